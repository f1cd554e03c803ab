import pytest

from tests.support.programs import Program, observes, sees

PROGRAM = Program("cli-checkpoint-of-subclass", "2.5.6")

PARSING = ['error: Parser key "model":', "Parsing of ckpt_path hyperparameters failed!"]
LOST = {"error": PARSING, "imported": False, "made": None, "values": None}
MADE = {"subclass": ("Deeper", {"width": 5, "depth": 3}), "same": ("Model", {"width": 5})}


@pytest.mark.parametrize("toggle", [None, "default,security"])
def test_module_named_in_the_file_is_not_imported(toggle):
    assert PROGRAM.stock("unknown").facts == LOST
    shim = PROGRAM.shim("unknown", toggle=toggle).facts
    assert "'_named_in_file.Model', and that is not a subclass of Model that has been imported" in shim["error"]
    assert not shim["imported"]


test_other_checkpoints_are_unchanged = PROGRAM.unchanged(
    "plain", "empty", check=sees(lambda seen: seen["made"] == "Model")
)

test_other_releases_are_unchanged = PROGRAM.unchanged("subclass", on=("2.5.4", "2.6.0"))

PROOFS = tuple(
    PROGRAM.proof(
        observes(LOST),
        case=case,
        right=sees(lambda seen, made=made: (seen["error"], seen["made"], seen["values"]) == (None, *made)),
    )
    for case, made in MADE.items()
)
