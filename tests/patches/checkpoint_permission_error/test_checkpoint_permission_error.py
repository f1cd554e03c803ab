"""PR 21799: a PermissionError while a checkpoint is written was swallowed: no file, and no word."""

from functools import cache

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

DENIED = {
    "error": "PermissionError: [Errno 13] Access Denied: 'guarded://run/model.ckpt'",
    "written": False,
    "piped": [],
}
WRITTEN = {"error": None, "written": True, "piped": []}


@cache
def seen(version, case, shim=False):
    result = run("checkpoint_permission_error", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_release_before_the_bug_is_unchanged():
    assert seen("2.5.1", "save") == seen("2.5.1", "save", shim=True) == DENIED


@pytest.mark.parametrize(("version", "case"), [("2.5.2", "permitted"), ("2.6.6", "permitted"), ("2.6.6", "local")])
def test_writable_path_is_written(version, case):
    assert seen(version, case) == seen(version, case, shim=True) == WRITTEN


@pytest.mark.parametrize("version", ["2.6.4", "2.6.6"])
def test_subclass_of_the_azure_file_system_is_written_as_azure(version):
    assert seen(version, "azure") == seen(version, "azure", shim=True) == WRITTEN


LOST = {"error": None, "written": False, "piped": []}
PROOFS = tuple(
    Proof("checkpoint-permission-error", observes(LOST), case=case, recommended="by-hand", right=observes(DENIED))
    for case in ("save", "callback")
)
