"""Issues 19549, 20277 and 20288: a resumed run validates one batch before it trains. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, toggle=None, shim=True):
    result = run("validation_on_resume", Variant("pytorch-lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.4.0"])
@pytest.mark.parametrize("case", ["", "end"])
def test_repeated_validation_is_warned_of_once(version, case):
    warned = seen(version, case)
    (warning,) = warned.pop("warnings")
    assert warning.startswith("This run was resumed from a checkpoint that was saved at the end of a validation")
    assert warned == {name: value for name, value in seen(version, case, shim=False).items() if name != "warnings"}


@pytest.mark.parametrize("case", ["start", "epoch", "marks", "marks later"])
def test_no_warning_if_no_validation_is_repeated(case):
    """Or if the module has turned it into a sanity check."""
    assert seen("2.4.0", case)["warnings"] == []


def test_no_warning_if_the_opt_in_patch_leaves_the_validation_out():
    observed = seen("2.4.0", "", toggle="default,validation-on-resume")
    assert observed["warnings"] == [] and observed["resumed"]["seen"][0] == "train 4"
