"""PR 19446: CSVLogger appends to the file of an earlier run."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

MESSAGE = "dict contains fields not in fieldnames"
RUN = ["epoch,loss,step", "0,0.0,0", "0,1.0,1"]


def result(version, case="", shim=False, toggle="all"):
    return run(
        "csv_logger_own_file", Variant("pytorch-lightning", version, shim), case, toggle=toggle if shim else None
    )


def test_other_version_writes_another_file():
    stock, shim = result("2.2.0", "next"), result("2.2.0", "next", shim=True)
    assert stock.ok and len(stock.observations[0]["files"]) == 2
    assert stock.observations == shim.observations


def test_patch_is_opt_in():
    assert result("2.2.0", shim=True, toggle="default").observations == result("2.2.0").observations


def sorted_rows(observations):
    """2.1.0 and 2.1.1 write the columns in the order of a set."""
    return [
        {version: [sorted(row.split(",")) for row in rows] for version, rows in seen.get("files", {}).items()}
        for seen in observations
    ]


PROOFS = (
    Proof(
        "csv-logger-own-file",
        sees(lambda seen: len(seen.get("files", {}).get("mine", ())) == 5),
        observed=sorted_rows,
    ),
    Proof("csv-logger-own-file", ends_with(MESSAGE), case="other", observed=sorted_rows),
)
