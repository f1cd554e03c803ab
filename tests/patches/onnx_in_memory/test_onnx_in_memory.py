"""PR 20172: to_onnx into a buffer leaves it empty, and writes a file that has the buffer's name."""

from tests.equivalence.proof import Proof, observes
from tests.support.arms import Arm, run

NAME = "onnx-in-memory"


def test_a_path_is_written_to_as_on_stock():
    stock, shim = (
        run("onnx_in_memory", Arm("lightning", "2.4.0", shim), "path", toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.observations == shim.observations == [{"buffer": "", "files": 1, "training": True}]


def test_a_model_that_is_more_than_one_file_is_an_error_that_says_what_to_do():
    shim = run("onnx_in_memory", Arm("lightning", "2.4.0", shim=True), "beside", toggle=NAME)
    assert "Give to_onnx a path, or external_data=False" in shim.observations[0]["error"]


PROOFS = (
    Proof(
        NAME,
        observes({"buffer": "", "files": 1, "training": True}),
        case="buffer",
        right=observes({"buffer": "model", "files": 0, "training": True}),
    ),
)
