"""PR 18079: load_from_checkpoint of a GPU checkpoint on a machine without a GPU."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "load-from-gpu-checkpoint"
LOADED = {"same": True, "device": "cpu", "done": True}


@pytest.mark.parametrize("case", ["cpu", "given"])
def test_loadable_checkpoint_is_loaded_as_on_stock(case):
    for shim in (False, True):
        result = run(
            "load_from_gpu_checkpoint", Variant("pytorch-lightning", "2.0.9", shim), case, toggle=NAME if shim else None
        )
        assert result.observations == [LOADED], result


def test_wrapper_of_torch_load_gets_the_arguments_of_stock():
    for shim in (False, True):
        result = run("load_from_gpu_checkpoint", Variant("pytorch-lightning", "2.0.9", shim), "wrapped")
        assert result.observations == [{**LOADED, "map_location": None}], result


REFUSED = ends_with("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False")
PROOFS = (
    Proof(NAME, REFUSED, right=sees(lambda seen: seen == LOADED)),
    Proof(NAME, REFUSED, case="datamodule", right=sees(lambda seen: seen["done"])),
)
