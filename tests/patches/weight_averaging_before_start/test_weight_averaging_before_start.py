from functools import cache

import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, observes

PROGRAM = Program("weight-averaging-before-start", "2.6.0")

TRAINED = [1 - step / 8 for step in range(1, 7)]
"""The weight after each step, without an average."""


@cache
def seen(version, case, shim=False):
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok, result
    found = result.observations[0]
    calls = {"calls": found["calls"]} if "calls" in found else {}
    return (
        calls
        | {name: [float.fromhex(v) for v in found[name]] for name in ("validated", "saved")}
        | {"trained": float.fromhex(found["trained"])}
    )


@pytest.mark.parametrize("case", ["later", "ema"])
def test_average_is_used_from_its_start_on(case):
    stock, shim = (seen("2.6.6", case, on) for on in (False, True))
    assert stock["validated"][:3] == [1.0] * 3 and shim["validated"][:3] == TRAINED[:3]
    assert stock["validated"][3:] == shim["validated"][3:]
    assert shim["saved"] == shim["validated"]
    assert stock["trained"] == shim["trained"] == shim["validated"][-1]


def test_run_resumed_before_the_start_keeps_its_weights():
    assert seen("2.6.6", "resume", shim=True) == seen("2.6.6", "later", shim=True)


@pytest.mark.parametrize("case", ["at-once", "other", "restart"])
def test_average_from_the_first_step_is_unchanged(case):
    """Also an average that another callback updates without a count, or whose counter is reset."""
    stock, shim = (seen("2.6.6", case, on) for on in (False, True))
    assert stock == shim and stock["trained"] not in (1.0, TRAINED[-1])


def test_subclass_with_more_overrides_is_unchanged():
    """Such a subclass may average by itself. Upstream's ``test_swa`` counts its calls."""
    stock, shim = (seen("2.6.6", "subclass", on) for on in (False, True))
    assert stock == shim and stock["calls"] == [12, 1]


def test_average_of_another_class_is_unchanged():
    assert not difference("other_average", "2.6.6", "weight-averaging-before-start")


def _weights(steps):
    """Return the validated and saved weight after each step. The last one is the training's result."""
    values = [value.hex() for value in steps]
    return observes({"validated": values, "saved": values, "trained": values[-1]})


PROOFS = PROGRAM.proofs(_weights([1.0] * 6), "never", recommended="without", since="2.6.0", right=_weights(TRAINED))
