import pytest

from tests.support.programs import Program, observes

PROGRAM = Program("mpi-without-library", "2.2.5", "pytorch-lightning")

MISSING = "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("case", "error", "result"),
    [("1", None, False), ("2", None, True), ("another way", "RuntimeError: MPI_Init failed", None)],
)
def test_working_mpi_is_used_as_on_stock(case, error, result):
    stock, shim = PROGRAM.both(case)
    assert stock.facts == shim.facts == {"error": error, "result": result}


PROOFS = PROGRAM.proofs(
    observes({"error": MISSING, "result": None}), "trainer", "fabric", right=observes({"error": None, "result": 2})
)
