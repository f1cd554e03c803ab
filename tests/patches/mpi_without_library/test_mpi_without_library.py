"""PR 21353: mpi4py is installed, and the MPI library that it needs is not."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

MISSING = "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory"


def seen(version, case, shim=False):
    result = run("mpi_without_library", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["trainer", "fabric"])
@pytest.mark.parametrize("version", ["2.0.0", "2.5.6"])
def test_broken_mpi_counts_as_missing(version, case):
    assert seen(version, case) == {"error": MISSING, "result": None}
    assert seen(version, case, shim=True) == {"error": None, "result": 2}


@pytest.mark.parametrize("case", ["1", "2", "another way"])
def test_working_mpi_is_used_as_on_stock(case):
    stock = seen("2.2.5", case)
    expected = {"error": "RuntimeError: MPI_Init failed", "result": None}
    assert stock == (expected if case == "another way" else {"error": None, "result": case == "2"})
    assert seen("2.2.5", case, shim=True) == stock


ENDS = sees(lambda seen: seen["error"] == MISSING)
PROOFS = tuple(Proof("mpi-without-library", ENDS, case=case) for case in ("trainer", "fabric"))
