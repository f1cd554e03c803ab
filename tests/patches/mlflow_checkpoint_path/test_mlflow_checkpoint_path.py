import pytest

from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("mlflow-checkpoint-path", "2.5.6", alone=True)


@pytest.mark.parametrize("version", ["2.5.1", "2.5.6"])
def test_prefix_of_the_path_is_kept(version):
    stock, shim = PROGRAM.both("prefix", version)
    assert "Invalid artifact path" in stock.output
    assert shim.ok, shim
    names = ["epoch=1.ckpt", "aliases.txt", "metadata.yaml"]
    assert shim.observations[0]["given"] == [["run", name, "kept/here/epoch=1"] for name in names]


PROOFS = PROGRAM.proofs(
    ends_with("MlflowException: Invalid artifact path: "),
    "end",
    "all",
    right=sees(lambda seen: ["run", "epoch=1.ckpt", "epoch=1"] in seen["given"]),
)
