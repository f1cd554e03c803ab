import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("checkpoint-written-once", "2.6.6", toggle="1,checkpoint-written-once")


@pytest.mark.parametrize("version", ["2.4.0", "2.6.6"])
def test_checkpoint_is_written_without_copies(version):
    stock = PROGRAM.stock("save", version).facts
    assert stock["copied"] and stock["staged"]
    shim = PROGRAM.shim("save", version).facts
    assert shim == {**stock, "copied": False, "staged": False}
    assert {**shim, "mode": ""} == {**PROGRAM.stock("by-hand", version).facts, "mode": ""}


# An error keeps the old file and leaves no other; links, permissions and Fabric.
test_other_saves_are_unchanged = PROGRAM.unchanged(
    "fails", "link", "mode", "fabric", observed=lambda ranks: [{**rank, "staged": None} for rank in ranks]
)


def test_checkpoint_is_saved_on_a_mount_without_permissions():
    """PR 20780."""
    assert PROGRAM.stock("mount", "2.5.1").facts["error"] == "PermissionError"
    assert PROGRAM.shim("mount", "2.5.1").facts["error"] is None


def test_unpicklable_checkpoint_raises():
    assert PROGRAM.shim("fails").facts["error"] in ("AttributeError", "PicklingError")


test_release_without_staging_is_unchanged = PROGRAM.unchanged("mode", on=("2.3.3",))

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["copied"] and seen["staged"]),
    "save",
    recommended="by-hand",
    observed=only("error", "copied", "staged", "whole", "there"),
)
