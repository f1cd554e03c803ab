import sys

import pytest

from tests.support.programs import Program
from tests.support.run import execute
from tests.support.variants import Variant, environment_of

pytestmark = pytest.mark.distributed

PATCH = "sigterm-at-batch-boundary"

PROGRAM = Program(PATCH, "2.6.6", alone=True, options={"timeout": 200})


@pytest.fixture(scope="module")
def stock_hangs():
    seen = PROGRAM.stock("one").facts
    assert "hangs" in seen["statuses"] and seen["checkpoint"] == [], seen


def assert_left_together(seen):
    assert seen["statuses"] == [143, 143], seen
    assert seen["together"] and seen["received"] == [True, True], seen
    assert seen["checkpoint"] == ["preempted.ckpt"], seen


def test_signal_to_one_rank_ends_both_at_the_same_batch(stock_hangs):
    seen = PROGRAM.shim("one").facts
    assert_left_together(seen)
    assert seen["places"][0][0] < 500, seen


def test_signals_some_batches_apart_end_both_ranks_at_the_same_batch():
    stock, shim = (result.facts for result in PROGRAM.both("all", "2.5.2"))
    assert stock["statuses"] != [143, 143], stock
    assert_left_together(shim)


@pytest.mark.parametrize(
    ("case", "evaluated"), [("validation", [500, 500]), ("sanity", [300, 300]), ("uneven", [200, 60])]
)
def test_signal_during_validation_ends_the_job_after_it(case, evaluated, stock_hangs):
    seen = PROGRAM.shim(case).facts
    assert seen["statuses"] == [143, 143] and seen["received"] == [True, True], seen
    assert [rank[1] for rank in seen["places"]] == evaluated and len({rank[0] for rank in seen["places"]}) == 1, seen
    assert seen["checkpoint"] == ["preempted.ckpt"], seen


@pytest.mark.parametrize(("case", "batches"), [("testing", 0), ("epoch", 8)])
def test_standalone_evaluation_stops_as_in_one_process(case, batches):
    """The rank that got the signal stops in the evaluation, or in the last batch of the fit before it."""
    seen = PROGRAM.shim(case).facts
    assert "hangs" not in seen["statuses"] and seen["received"][1], seen
    assert seen["places"][1][0] == batches and seen["places"][1][1] < 10, seen


def test_rank_whose_peer_failed_does_not_wait_for_it(stock_hangs):
    seen = PROGRAM.shim("failed").facts
    assert seen["statuses"][0] == 1 and seen["statuses"][1] not in (0, "hangs"), seen


def test_store_is_not_used_after_its_rank_may_be_gone():
    """Otherwise torch would print on stderr that the connection was lost."""
    result = PROGRAM.shim("late")
    assert result.observations[0]["statuses"] == [0, 0] and "recvValue failed" not in result.output, result


WITHOUT_SIGNALS = """
import lightning_patches
import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel


class NoSignals:
    __slots__ = ("received_sigterm",)

    def register_signal_handlers(self):
        pass

    def teardown(self):
        pass


trainer = pl.Trainer(accelerator="cpu", max_steps=2, logger=False, enable_checkpointing=False)
trainer._signal_connector = NoSignals()
trainer._signal_connector.received_sigterm = False
trainer.fit(BoringModel())
print("trained", trainer.global_step)
"""


def test_custom_signal_connector_works(tmp_path):
    variables = environment_of(Variant("pytorch-lightning", "2.6.6", shim=True), toggle=PATCH)
    status, output = execute([sys.executable, "-c", WITHOUT_SIGNALS], variables, 120, cwd=str(tmp_path))
    assert status == 0 and "trained 2" in output, output
