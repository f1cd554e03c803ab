import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("validation-after-short-epoch", "2.6.6")


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_validation_within_the_epoch_and_at_its_end(version):
    stock, shim = (result.facts for result in PROGRAM.both("half", version))
    assert stock["seen"].count("validate") == 2
    assert shim["seen"].count("validate") == 4
    assert shim["seen"].index("epoch") - 1 == max(i for i, what in enumerate(shim["seen"][:12]) if what == "validate")


# Validation has just run, is not due at the end of an epoch, or the program ended the epoch.
test_validation_that_is_not_due_is_not_run = PROGRAM.unchanged("fifth", "uneven", "skip", observed=only("seen"))


def test_accumulated_gradients_are_kept():
    stock, shim = (result.facts for result in PROGRAM.both("every-2"))
    assert shim["seen"].count("validate") == 2 and "zero_grad" not in shim["seen"]
    assert [what for what in shim["seen"] if what != "validate"] == stock["seen"]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: "validate" not in seen["seen"] and seen["lr"] == (0.1).hex()),
    "",
    "plateau",
    recommended="{}-right",
    right=sees(lambda seen: seen["seen"].count("validate") == 2),
)
