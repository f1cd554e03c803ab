"""PRs 17139 and 17986: CSVLogger takes version_0 for each run."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

RIGHT = {"versions": [0, 1, 2], "folders": ["version_0", "version_1", "version_2"]}


def test_trainer_logger_below_2_0_3_is_fixed_too():
    stock, shim = (
        run(
            "csv_logger_relative_directory", Variant("pytorch-lightning", "2.0.2", shim), toggle="all" if shim else None
        )
        for shim in (False, True)
    )
    assert stock.observations == [{"versions": [0, 0, 0], "folders": ["version_0"]}]
    assert shim.observations == [RIGHT]


PROOFS = (
    Proof(
        "csv-logger-relative-directory",
        observes({"versions": [0, 0, 0], "folders": ["version_0"]}),
        case="fabric",
        right=observes(RIGHT),
    ),
)
