import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run

NAME = "cli-checkpoint-of-other-class"


def observed(version, case, toggle):
    variant = Variant("lightning", version, shim=toggle is not None)
    result = run("cli_checkpoint_of_other_class", variant, case, toggle=toggle)
    assert result.ok, result
    seen = result.observations[0]
    return seen, seen.pop("warnings")


@pytest.mark.parametrize("version", ["2.5.5", "2.6.6"])
def test_warning_names_the_dropped_hyperparameters(version):
    seen, (warning,) = observed(version, "other", NAME)
    assert seen == {"failed": None, "made": "Other", "width": 5}
    assert warning.endswith("are left out: lr.")


@pytest.mark.parametrize("version", ["2.5.5", "2.6.6"])
@pytest.mark.parametrize("case", ["same", "wrong"])
def test_other_checkpoints_are_unchanged(version, case):
    stock, _ = observed(version, case, None)
    assert stock["failed"] == (True if case == "wrong" else None)
    shim, warnings = observed(version, case, NAME)
    assert shim == stock
    assert len(warnings) == (case == "wrong")


@pytest.mark.parametrize("version", ["2.5.5", "2.6.6"])
def test_checkpoint_is_refused_by_default_as_upstream_tests_require(version):
    stock, _ = observed(version, "other", None)
    assert stock["failed"] is True
    assert observed(version, "other", "1") == (stock, [])


def test_warning_names_the_replaced_class_in_subclass_mode():
    seen, (warning,) = observed("2.6.6", "subclass", NAME)
    assert seen == {"failed": None, "made": "Trained", "width": 5}
    assert (
        "LightningCLI creates a __main__.Trained, which the checkpoint names, instead of the __main__.Also" in warning
    )


def test_warning_about_the_checkpoint_class_is_absent_in_subclass_mode():
    assert observed("2.6.6", "trained", NAME) == ({"failed": None, "made": "Trained", "width": 5}, [])


PROOFS = proofs(
    NAME,
    sees(lambda seen: seen["failed"] is True),
    "other",
    "none",
    recommended="{}-stripped",
    observed=only("failed", "made", "width"),
    right=sees(lambda seen: seen["made"] is not None),
)
