"""PR 17942: Fabric's CSVLogger writes nothing where log_metrics gets no step."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ROWS = ["loss,step", "0.0,0", "1.0,1", "2.0,2", "3.0,3", "4.0,4"]


def seen(version, case="", shim=False):
    result = run("csv_logger_flush", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_given_steps_are_logged_unchanged():
    assert seen("2.0.4", "step") == seen("2.0.4", "step", shim=True) == {"before": ROWS[:5], "after": ROWS}


def test_custom_experiment_receives_unchanged_arguments():
    assert seen("2.0.4", "own") == seen("2.0.4", "own", shim=True) == {"steps": [None, 7, "saved"]}


PROOFS = (Proof("csv-logger-flush", sees(lambda seen: seen["before"] is None)),)
