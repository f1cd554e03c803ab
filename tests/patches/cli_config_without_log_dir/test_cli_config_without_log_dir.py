"""Issue 20615: LightningCLI with a logger that has no save_dir ends in a bare AssertionError."""

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


def seen(case, shim):
    result = run("cli_config_without_log_dir", Variant("lightning", "2.6.6", shim), case)
    return result.ok, result.observations[0]


@pytest.mark.parametrize("case", ["no-logger", "not-in-log-dir", "csv"])
def test_program_that_needs_no_fix_is_unchanged(case):
    assert seen(case, True) == seen(case, False) == (True, seen(case, False)[1])


def test_config_of_a_previous_run_is_not_overwritten():
    ok, observed = seen("again", True)
    assert not ok and "config.yaml to NOT exist" in observed["error"]


def test_save_config_of_a_subclass_is_called_once():
    assert seen("own", True)[1] == {"configs": 1, "steps": 1, "saved": 1}


PROOFS = proofs(
    "cli-config-without-log-dir",
    sees(lambda seen: seen.get("error", "").startswith("AssertionError")),
    "remote",
    recommended="no-logger",
    right=sees(lambda seen: seen["configs"] == 1),
)
