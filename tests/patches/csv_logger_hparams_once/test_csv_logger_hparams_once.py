"""PR 20594: CSVLogger writes hparams.yaml with every line of metrics."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

TEXT = "rate: 0.1\nwidths:\n- 1\n- 2\n"


@pytest.mark.parametrize("version", ["2.0.0", "2.5.0.post0"])
@pytest.mark.parametrize(
    ("case", "text"),
    [("changed", f"{TEXT}- 3\n"), ("signed", TEXT.replace("0.1", "-0.0")), ("named", TEXT), ("moved", TEXT)],
)
def test_changed_hyperparameters_are_written(version, case, text):
    for shim in (False, True):
        result = run("csv_logger_hparams_once", Variant("pytorch-lightning", version, shim), case)
        assert result.observations[0]["text"] == text, result


PROOFS = (
    Proof(
        "csv-logger-hparams-once",
        observes({"often": True, "text": TEXT}),
        right=observes({"often": False, "text": TEXT}),
    ),
)
