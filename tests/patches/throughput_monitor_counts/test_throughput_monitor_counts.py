import pytest

from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("throughput-monitor-counts", "2.2.0", alone=True)
TRAINED = [["train", batches, 2 * batches] for batches in range(1, 25)]
# Nine batches in each epoch, the last of a single sample, 17 in all.
VARYING = [["train", batches, 2 * batches - batches // 9] for batches in range(1, 28)]


def logged(version, case, shim):
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok, result
    return result.observations[0]["logged"]


@pytest.mark.parametrize("version", ["2.2.0", "2.5.6"])
@pytest.mark.parametrize("case", ["even", "evaluation"])
def test_batches_of_equal_size_are_counted_as_on_stock(version, case):
    stock, shim = logged(version, case, shim=False), logged(version, case, shim=True)
    if case == "evaluation":
        assert stock == shim == [["validate", batches, 3 * batches] for batches in range(1, 5)]
        return
    for seen in (stock, shim):
        assert [entry for entry in seen if entry[0] == "train"] == TRAINED
    # Within fit, the counts begin at 0 in each validation, as since 2.6.0.
    assert [entry for entry in shim if entry[0] == "validate"] == 3 * [["validate", 1, 3], ["validate", 2, 6]]


def _right(seen):
    return seen["training_alone_is_timed"] and [one for one in seen["logged"] if one[0] == "train"] == (
        TRAINED if seen["steps"] == 24 else VARYING
    )


INCREASE = ends_with("ValueError: Expected the value to increase, last: ")
PROOFS = (
    PROGRAM.proof(INCREASE, case="varying", since="2.2.0", right=sees(_right)),
    PROGRAM.proof(INCREASE, case="validation", since="2.2.0", right=sees(_right)),
    PROGRAM.proof(
        INCREASE,
        case="lengths",
        since="2.2.0",
        right=sees(lambda seen: seen["logged"][-1] == ["train", 27, 51, 51 * 32]),
    ),
)
