from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("csv-logger-own-file", "2.2.0", "pytorch-lightning", toggle="all")

MESSAGE = "dict contains fields not in fieldnames"
RUN = ["epoch,loss,step", "0,0.0,0", "0,1.0,1"]

test_other_version_writes_another_file = PROGRAM.unchanged("next", check=sees(lambda seen: len(seen["files"]) == 2))


def sorted_rows(observations):
    """Return the rows with sorted columns: 2.1.0 and 2.1.1 write them in the order of a set."""
    return [
        {version: [sorted(row.split(",")) for row in rows] for version, rows in seen.get("files", {}).items()}
        for seen in observations
    ]


PROOFS = (
    PROGRAM.proof(sees(lambda seen: len(seen.get("files", {}).get("mine", ())) == 5), observed=sorted_rows),
    PROGRAM.proof(ends_with(MESSAGE), case="other", observed=sorted_rows),
)
