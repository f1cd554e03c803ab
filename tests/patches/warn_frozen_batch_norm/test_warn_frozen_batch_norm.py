"""PR 18951: frozen batch norm is put back into training mode. The patch only says so."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim):
    result = run("warn_frozen_batch_norm", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    found = result.observations[0]
    return found["moved"], found["warnings"]


@pytest.mark.parametrize(
    ("version", "case"), [("2.0.0", ""), ("2.1.4", ""), ("2.0.0", "start"), ("2.1.4", "middle"), ("2.1.4", "validated")]
)
def test_names_the_layer_that_is_trained(version, case):
    assert seen(version, case, False) == (True, [])
    moved, (warning,) = seen(version, case, True)
    assert moved and warning.startswith("The batch norm layer body.1 is in training mode, though")


@pytest.mark.parametrize(
    ("case", "moved"), [("trained", True), ("kept", False), ("again", False), ("step", False), ("evaluated", True)]
)
def test_is_silent_where_the_layer_is_as_the_model_wants_it(case, moved):
    assert seen("2.1.4", case, True) == (moved, [])


def test_next_release_keeps_the_mode():
    assert seen("2.2.0", "", True) == (False, [])
