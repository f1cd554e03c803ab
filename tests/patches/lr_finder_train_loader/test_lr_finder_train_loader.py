import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("lr-finder-train-loader", "2.4.0", alone=True)

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"


def _whole(seen):
    """True if every epoch has all batches, and ends with a complete validation."""
    epochs = "0", "1", "2", "3"
    return seen["batches"] == dict.fromkeys(epochs, 16) and seen["validated"] == dict.fromkeys(epochs, 4)


PROOFS = (
    PROGRAM.proof(
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="callback",
        right=sees(_whole),
    ),
    PROGRAM.proof(
        sees(lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"]),
        case="shuffle",
        right=sees(_whole),
    ),
)

test_first_epoch_is_whole = PROGRAM.fixed(
    "workers",
    "milestones",
    on=("2.1.0", "2.3.3"),
    bug=sees(lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"]),
    right=sees(_whole),
    like="2.5.3",
)


def _batches(count):
    return lambda result: [rank["batches"]["0"] for rank in result.observations] == [count, count]


test_finder_on_two_ranks_uses_all_batches = pytest.mark.distributed(
    PROGRAM.fixed("ddp", bug=_batches(5), right=_batches(8), like="2.5.3", toggle=TOGETHER)
)
