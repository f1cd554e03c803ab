"""PR 20594: CSVLogger writes hparams.yaml with every line of metrics."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.arms import Arm, run
from tests.support.effects import Effect

TEXT = "rate: 0.1\nwidths:\n- 1\n- 2\n"


@pytest.mark.parametrize("version", ["2.0.0", "2.5.0.post0"])
def test_a_value_that_changes_is_written(version):
    for shim in (False, True):
        result = run("csv_logger_hparams_once", Arm("pytorch-lightning", version, shim), "changed")
        assert result.observations[0]["text"] == f"{TEXT}- 3\n", result


EFFECTS = (
    Effect(
        "hparams.yaml is not opened where it would be written as it is, and the program's own file system is asked "
        "for less",
        (r"touched open \S*/hparams\.yaml$", r"call LocalFileSystem\.\w+\('\S*/version_\d(/hparams\.yaml)?'"),
    ),
)

PROOFS = (
    Proof(
        "csv-logger-hparams-once",
        observes({"often": True, "text": TEXT}),
        right=observes({"often": False, "text": TEXT}),
    ),
)
