from tests.support.programs import Program, sees

PROGRAM = Program("sequential-loader-workers", "2.0.2")


def test_only_one_loader_has_workers():
    stock, shim = (result.facts for result in PROGRAM.both("validate"))
    assert (stock.pop("workers"), shim.pop("workers")) == ([3, 3, 3], [1, 1, 1])
    assert shim == stock


test_batches_are_unchanged = PROGRAM.unchanged("batches")

ALL = sees(lambda seen: seen["workers"][0] == 3)
ONE = sees(lambda seen: seen["workers"] == [1, 1, 1])
PROOFS = PROGRAM.proofs(ALL, "validate", "predict", "loader", right=ONE)
