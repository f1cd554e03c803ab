import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("cli-checkpoint-of-other-class", "2.6.6", alone=True)
MADE = {"failed": None, "made": "Trained", "width": 5}


@pytest.mark.parametrize("version", ["2.5.5", "2.6.6"])
def test_warning_names_the_dropped_hyperparameters(version):
    shim = PROGRAM.shim("other", version).facts
    (warning,) = shim.pop("warnings")
    assert shim == {**MADE, "made": "Other"}
    assert warning.endswith("are left out: lr.")


test_suitable_checkpoint_is_unchanged = PROGRAM.unchanged("same", on=("2.5.5", "2.6.6"))
test_checkpoint_with_wrong_values_is_refused_with_a_warning = PROGRAM.warns("wrong", says="", on=("2.5.5", "2.6.6"))
test_checkpoint_is_refused_by_default_as_upstream_tests_require = PROGRAM.unchanged(
    "other", on=("2.5.5", "2.6.6"), check=sees(lambda seen: seen["failed"] is True), toggle="default"
)


def test_warning_names_the_replaced_class_in_subclass_mode():
    shim = PROGRAM.shim("subclass").facts
    (warning,) = shim.pop("warnings")
    assert shim == MADE
    assert (
        "LightningCLI creates a __main__.Trained, which the checkpoint names, instead of the __main__.Also" in warning
    )


def test_warning_about_the_checkpoint_class_is_absent_in_subclass_mode():
    assert PROGRAM.shim("trained").facts == {**MADE, "warnings": []}


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["failed"] is True),
    "other",
    "none",
    recommended="{}-stripped",
    observed=only("failed", "made", "width"),
    right=sees(lambda seen: seen["made"] is not None),
)
