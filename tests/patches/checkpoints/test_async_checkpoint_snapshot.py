import warnings

import pytest
import torch

from lightning_patches.patches.checkpoints import async_checkpoint_snapshot
from tests.support.programs import Program

PROGRAM = Program("async-checkpoint-snapshot", "2.5.4")


@pytest.mark.parametrize("version", ["2.0.0", "2.5.3"])
def test_tied_weights_and_module_versions_are_kept(version):
    stock, shim = (result.facts for result in PROGRAM.both(version=version))
    assert stock["saved"]["momentum"] != stock["asked_for"]["momentum"] == shim["saved"]["momentum"]
    assert shim["tied"] is stock["tied"] is True and shim["norm_version"] == stock["norm_version"] == 2


KINDS = {
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "sparse": lambda: torch.eye(2).to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "negative": lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
    "meta": lambda: torch.empty(2, device="meta"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_every_kind_can_be_saved(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that some are prototypes
        tensor = KINDS[kind]()
        copied = async_checkpoint_snapshot._snapshot({"a": tensor}, {})["a"]
    assert copied is not tensor and type(copied) is type(tensor) and copied.device == tensor.device
    assert (copied.is_conj(), copied.is_neg()) == (tensor.is_conj(), tensor.is_neg())
    if kind != "meta":
        old, new = (t.unbind() if t.is_nested else [t.to_dense() if t.is_sparse else t] for t in (tensor, copied))
        assert len(old) == len(new) and all(map(torch.equal, old, new))
