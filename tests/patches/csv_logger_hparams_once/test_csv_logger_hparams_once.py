import pytest

from tests.support.programs import Program, observes

PROGRAM = Program("csv-logger-hparams-once", "2.5.0.post0", "pytorch-lightning")

TEXT = "rate: 0.1\nwidths:\n- 1\n- 2\n"


@pytest.mark.parametrize("version", ["1.8.6", "2.0.0", "2.5.0.post0"])
@pytest.mark.parametrize(
    ("case", "text"),
    [("changed", f"{TEXT}- 3\n"), ("signed", TEXT.replace("0.1", "-0.0")), ("named", TEXT), ("moved", TEXT)],
)
def test_changed_hyperparameters_are_written(version, case, text):
    assert [result.facts["text"] for result in PROGRAM.both(case, version)] == [text, text]


PROOFS = PROGRAM.proofs(observes({"often": True, "text": TEXT}), right=observes({"often": False, "text": TEXT}))
