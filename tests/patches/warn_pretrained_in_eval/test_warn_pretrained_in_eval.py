"""Issue 20646: a pretrained part is loaded in evaluation mode, and trained in it. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True):
    result = run("warn_pretrained_in_eval", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.2.0", "2.5.4"])
def test_module_trained_in_evaluation_mode_causes_a_warning(version):
    warned = seen(version, "eval")
    (warning,) = warned["warnings"]
    assert "1 modules are in evaluation mode at the start of training" in warning and "pretrained.0" in warning
    assert warned["modes"] == seen(version, "eval", shim=False)["modes"] == [False, False]


@pytest.mark.parametrize(
    ("version", "case"),
    [("2.4.0", "train"), ("2.4.0", "frozen"), ("2.4.0", "switched"), ("2.1.4", "eval"), ("2.5.5", "eval")],
)
def test_warning_is_absent_for_other_models_and_releases(version, case):
    assert seen(version, case) == seen(version, case, shim=False)
