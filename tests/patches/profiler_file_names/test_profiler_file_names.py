import pytest

from tests.support.programs import Program, ends_with, only

PROGRAM = Program("profiler-file-names", "2.6.0")


@pytest.mark.parametrize("case", ["plain", "nowhere"])
def test_other_names_and_errors_are_unchanged(case):
    stock, shim = PROGRAM.both(case)
    assert stock.ok is shim.ok is (case == "plain")
    first, second = stock.observations[0], shim.observations[0]
    assert first.keys() == second.keys() and first.get("files") == second.get("files")


PROOFS = PROGRAM.proofs(
    ends_with("[Callback]EarlyStopping{'monitor': 'val/loss'"),
    observed=only("words"),
    since="2.4.0",
    note="The files' names without what is no letter and no digit: the official fix renames all files.",
)
