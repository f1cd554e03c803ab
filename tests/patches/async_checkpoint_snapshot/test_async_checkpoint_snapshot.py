"""PR 21079: AsyncCheckpointIO writes what training makes of the weights in the meantime."""

import warnings

import pytest
import torch

from lightning_patches.patches.checkpoints import async_checkpoint_snapshot
from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def observed(variant):
    result = run("async_checkpoint_snapshot", variant)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.3")])
def test_checkpoint_holds_the_moment_of_saving(distribution, version):
    stock = observed(Variant(distribution, version))
    assert stock["saved"]["weights"] != stock["asked_for"]["weights"], stock
    assert stock["saved"]["momentum"] != stock["asked_for"]["momentum"], stock

    shim = observed(Variant(distribution, version, shim=True))
    assert shim["saved"] == shim["asked_for"] == stock["asked_for"]
    assert shim["tied"] is stock["tied"] is True
    assert shim["norm_version"] == stock["norm_version"] == 2


def test_official_fix_saves_the_same():
    official = observed(Variant("lightning", "2.5.4"))
    assert official["saved"] == official["asked_for"]
    assert observed(Variant("lightning", "2.5.4", shim=True)) == official


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
        warnings.simplefilter("ignore")  # torch calls some of them prototypes
        tensor = KINDS[kind]()
        copied = async_checkpoint_snapshot._snapshot({"a": tensor}, {})["a"]
    assert copied is not tensor and type(copied) is type(tensor) and copied.device == tensor.device
    assert (copied.is_conj(), copied.is_neg()) == (tensor.is_conj(), tensor.is_neg())
    if kind != "meta":
        old, new = (t.unbind() if t.is_nested else [t.to_dense() if t.is_sparse else t] for t in (tensor, copied))
        assert len(old) == len(new) and all(map(torch.equal, old, new))


PROOFS = (
    Proof(
        "async-checkpoint-snapshot",
        sees(lambda seen: seen["saved"]["weights"] != seen["asked_for"]["weights"]),
        observed=only("asked_for", "saved"),
        note="tied weights and module versions, which the official fix loses",
    ),
)
