"""PR 21824: writing a checkpoint without a copy in memory and one in TMPDIR."""

from functools import cache

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


@cache
def seen(version, case, shim=False):
    toggle = "1,checkpoint-written-once" if shim else None
    result = run("checkpoint_written_once", Variant("lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.4.0", "2.6.6"])
def test_neither_copy_is_made(version):
    stock = seen(version, "save")
    assert stock["copied"] and stock["staged"]
    shim = seen(version, "save", shim=True)
    assert shim == {**stock, "copied": False, "staged": False}
    assert {**shim, "mode": ""} == {**seen(version, "by-hand"), "mode": ""}


@pytest.mark.parametrize("case", ["fails", "link", "mode", "fabric"])
def test_other_saves_are_unchanged(case):
    """An error leaves the old file and nothing else; links, rights and Fabric."""
    stock, shim = (seen("2.6.6", case, on) for on in (False, True))
    assert {**stock, "staged": None} == {**shim, "staged": None}


def test_checkpoint_is_saved_on_a_mount_without_permissions():
    """PR 20780."""
    assert seen("2.5.1", "mount")["error"] == "PermissionError"
    assert seen("2.5.1", "mount", shim=True)["error"] is None


def test_error_is_raised():
    assert seen("2.6.6", "fails", shim=True)["error"] in ("AttributeError", "PicklingError")


def test_release_without_staging_is_unchanged():
    assert seen("2.3.3", "mode") == seen("2.3.3", "mode", shim=True)


PROOFS = (
    Proof(
        "checkpoint-written-once",
        sees(lambda seen: seen["copied"] and seen["staged"]),
        case="save",
        observed=only("error", "copied", "staged", "whole", "there"),
        recommended="by-hand",
    ),
)
