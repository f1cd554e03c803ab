import pytest

from tests.support.programs import Program, sees

PROGRAM = Program(
    "progress-bar-without-wait", "2.6.6", "pytorch-lightning", alone=True, options={"simulated_cuda": True}
)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_displayed_numbers_are_unchanged(version):
    stock, shim = (result.facts for result in PROGRAM.both("read", version))
    assert len(stock["read"]) == 10 and stock["afterwards"]
    assert stock.pop("waits") >= shim.pop("waits") and shim == stock


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["waits"] >= 8), simulated_cuda=True, one_card=True, recommended="off", alone=True
)
