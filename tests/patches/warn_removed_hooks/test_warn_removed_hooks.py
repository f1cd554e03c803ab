import pytest

from tests.support.programs import Program
from tests.support.variants import Variant, run

PROGRAM = Program("warn-removed-hooks", "2.6.6", "pytorch-lightning")

ENDS = [("pytorch-lightning", "2.0.0"), ("pytorch-lightning", "2.6.6"), ("lightning", "2.6.6")]
RIGHT = -6.0
"""Two epochs of two steps, with gradients of 1 and 2 in each."""


def observed(variant, case):
    result = run("warn_removed_hooks", variant, case)
    assert result.ok, result
    seen = result.observations[0]
    return float.fromhex(seen["weight"]), seen["warnings"]


@pytest.mark.parametrize(("case", "name"), [("", "Old"), ("callback", "Forgets"), ("metaclass", "Old")])
@pytest.mark.parametrize(("distribution", "version"), ENDS)
def test_uncalled_hook_causes_one_warning(distribution, version, case, name):
    assert observed(Variant(distribution, version), "2.x") == (RIGHT, [])
    wrong = observed(Variant(distribution, version), case)
    assert wrong == (-10.0, [])

    weight, (warning,) = observed(Variant(distribution, version, shim=True), case)
    assert weight == wrong[0]
    assert f"never calls {name}.on_epoch_end (instead: on_train_epoch_end" in warning


@pytest.mark.parametrize("case", ["2.x", "others", "named"])
@pytest.mark.parametrize(("distribution", "version"), ENDS)
def test_warning_is_absent_if_all_hooks_are_called(distribution, version, case):
    """Programs with the replacement, a stub in a base class, or a hook that another method or the script calls."""
    assert observed(Variant(distribution, version, shim=True), case) == (RIGHT, [])


def test_program_continues_if_warnings_are_errors():
    result = PROGRAM.shim("error")
    assert result.ok, result
    assert result.observations[0]["weight"] == (-10.0).hex()
    assert "lightning_patches: Lightning 2.x never calls Old.on_epoch_end" in result.output
