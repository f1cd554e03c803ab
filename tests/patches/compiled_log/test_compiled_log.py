import pytest
import torch

from tests.support.programs import COMPILE, Program, ends_with, only

PROGRAM = Program("compiled-log", "2.5.1")

ERROR = "InternalTorchDynamoError"
PROOFS = PROGRAM.proofs(
    ends_with(ERROR), "model", "step", recommended="eager", observed=only("metrics", "weights"), needs=(COMPILE,)
)

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
pytestmark = pytest.mark.skipif(TORCH < (2, 12), reason="older torch compiles self.log")


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "model"), ("2.3.3", "step"), ("2.6.6", "model")])
def test_compiled_module_logs_the_same_values(version, case):
    stock = PROGRAM.stock(case, version)
    assert stock.ok if TORCH >= (2, 14) else not stock.ok and ERROR in stock.output, stock
    eager = PROGRAM.stock("eager", version)
    assert eager.ok, eager
    shim = PROGRAM.shim(case, version)
    assert shim.ok, shim
    seen = shim.observations[0]
    assert seen.pop("compiled") is True
    assert [seen] == eager.observations


def test_crashing_torch_query_is_not_used():
    """In torch 2.6 and 2.7 on Python 3.11, each call of the query decrements None's reference count."""
    shim, eager = (PROGRAM.shim(case) for case in ("unasked", "eager"))
    assert shim.ok and eager.ok, (shim, eager)
    assert shim.observations[0].pop("compiled") is True
    assert shim.observations == eager.observations


test_uncompiled_module_logs_as_on_stock = PROGRAM.unchanged("eager", on=("2.6.6",))


def test_compiled_log_works_with_the_other_logging_patches():
    """Patches of functions that self.log calls also work in compiled code."""
    names = "compiled-log,log-metrics-without-move,logged-metrics-device"
    for version in ("2.3.3", "2.4.0"):
        both = PROGRAM.shim("model", version, toggle=names)
        alone = PROGRAM.shim("model", version, toggle="compiled-log")
        assert both.ok and alone.ok, (both, alone)
        assert both.observations == alone.observations
