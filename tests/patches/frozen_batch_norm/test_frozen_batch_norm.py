from tests.differential.trial import difference
from tests.support.programs import Program, sees

PROGRAM = Program("frozen-batch-norm", "2.6.6")


def test_unfrozen_batch_norm_updates_its_statistics_again():
    shim = PROGRAM.shim("unfrozen").facts
    assert shim["mean"] != [(0.0).hex()] * 2 and shim["weight"] == [(1.0).hex()] * 2


test_other_runs_train_as_on_stock = PROGRAM.unchanged("train", "own", "by-hand")


def test_custom_freeze_is_called_as_on_stock():
    assert not difference("replaced_freeze", "2.6.6", "frozen-batch-norm")


PROOFS = PROGRAM.proofs(sees(lambda seen: seen["learns"]), recommended="by-hand")
