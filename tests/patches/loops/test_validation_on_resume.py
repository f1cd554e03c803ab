import pytest

from tests.support import forks
from tests.support.variants import Variant, run

NAME = "validation-on-resume"


def seen(version, case, shim=False, fork=None):
    variant = Variant("pytorch-lightning", version, shim, fork)
    result = run("validation_on_resume", variant, case, toggle=f"default,{NAME}")
    assert result.ok, result
    return result.observations[0]


def shows_bug(observed):
    return observed["resumed"]["seen"][:2] == ["validation", "validate 0"]


def is_right(observed):
    """True if the resumed run equals the end of the uninterrupted run, with bit-identical weights."""
    whole, resumed = observed["whole"], observed["resumed"]
    return resumed["seen"] == whole["seen"][-len(resumed["seen"]) :] and resumed["weights"] == whole["weights"]


@pytest.mark.parametrize("version", ["2.0.0", "2.4.0"])
@pytest.mark.parametrize("case", ["stopping", "plateau"])
def test_metric_of_the_left_out_validation_is_not_required(version, case):
    """Issue 18595: since 2.5.0, both raise an error."""
    assert shows_bug(seen(version, case))
    assert is_right(seen(version, case, shim=True))
    assert is_right(seen(version, case, fork=forks.directory_of("pytorch-lightning", version, [NAME])))


@pytest.mark.parametrize("version", ["2.1.0", "2.4.0"])
def test_module_that_marks_the_first_validation_is_unchanged(version):
    """The workaround of discussion 18110 must not mark a real validation. The scenario notes only real ones."""
    assert is_right(seen(version, "marks"))
    assert is_right(seen(version, "marks", shim=True))
    assert is_right(seen(version, "marks", fork=forks.directory_of("pytorch-lightning", version, [NAME])))
