"""PR 20825: with ranks that torchrun started, SIGTERM makes 2.5.2 and later hang until SIGKILL."""

import random
import sys
import threading
import time

import pytest

from tests.equivalence.proof import Proof, only
from tests.support.arms import Arm, environment_of, execute, run

pytestmark = pytest.mark.distributed
SCENARIO = "sigterm_at_batch_boundary"
PATCH = "sigterm-at-batch-boundary"


def observed(arm, case):
    result = run(SCENARIO, arm, case, toggle=PATCH if arm.shim else None, timeout=200)
    assert result.ok and result.observations, result
    return result.observations[0]


def hangs(result):
    return bool(result.observations) and "hangs" in result.observations[0]["statuses"]


@pytest.fixture(scope="module")
def stock_hangs():
    seen = observed(Arm("lightning", "2.6.6"), "one")
    assert "hangs" in seen["statuses"] and seen["checkpoint"] == [], seen


def assert_left_together(seen):
    assert seen["statuses"] == [143, 143], seen
    assert seen["together"] and seen["received"] == [True, True], seen
    assert seen["checkpoint"] == ["preempted.ckpt"], seen


def test_signal_to_one_rank(stock_hangs):
    seen = observed(Arm("lightning", "2.6.6", shim=True), "one")
    assert_left_together(seen)
    assert seen["places"][0][0] < 500, seen


def test_signals_to_both_ranks_some_batches_apart():
    stock = observed(Arm("pytorch-lightning", "2.5.2"), "all")
    assert stock["statuses"] != [143, 143], stock
    assert_left_together(observed(Arm("pytorch-lightning", "2.5.2", shim=True), "all"))


@pytest.mark.parametrize(
    ("case", "evaluated"), [("validation", [500, 500]), ("sanity", [300, 300]), ("uneven", [200, 60])]
)
def test_a_validation_is_brought_to_its_end(case, evaluated, stock_hangs):
    seen = observed(Arm("lightning", "2.6.6", shim=True), case)
    assert seen["statuses"] == [143, 143] and seen["received"] == [True, True], seen
    assert [rank[1] for rank in seen["places"]] == evaluated and len({rank[0] for rank in seen["places"]}) == 1, seen
    assert seen["checkpoint"] == ["preempted.ckpt"], seen


@pytest.mark.parametrize(("case", "batches"), [("testing", 0), ("epoch", 8)])
def test_an_evaluation_by_itself_is_left_as_in_one_process(case, batches):
    """By the rank that got the signal: in the evaluation, or in the last batch of the fit before it."""
    seen = observed(Arm("lightning", "2.6.6", shim=True), case)
    assert "hangs" not in seen["statuses"] and seen["received"][1], seen
    assert seen["places"][1][0] == batches and seen["places"][1][1] < 10, seen


def test_rank_whose_peer_failed_does_not_wait_for_it(stock_hangs):
    seen = observed(Arm("lightning", "2.6.6", shim=True), "failed")
    assert seen["statuses"][0] == 1 and seen["statuses"][1] not in (0, "hangs"), seen


def test_the_store_is_not_asked_when_its_rank_may_have_left():
    """torch would say on stderr that the connection was lost."""
    result = run(SCENARIO, Arm("lightning", "2.6.6", shim=True), "late", toggle=PATCH, timeout=200)
    assert result.observations[0]["statuses"] == [0, 0] and "recvValue failed" not in result.output, result


def test_one_process_is_as_before():
    stock = observed(Arm("lightning", "2.6.6"), "single")
    assert stock["statuses"] == [0] and stock["received"] == [True], stock
    assert observed(Arm("lightning", "2.6.6", shim=True), "single") == stock


class StoreOfOldTorch:
    """A store as torch 2.1 and 2.2 have it, which Lightning 2.5.2 to 2.6.6 accept: without ``check``; its
    ``compare_set`` ends in a segmentation fault."""

    def __init__(self, store):
        self.set, self.get, self.add = store.set, store.get, store.add


def where_a_rank_leaves(agreement, pace, chance):
    """A training in small: the batch."""
    for batch in range(4000):
        if agreement.before_batch():
            return batch
        time.sleep(chance.random() * pace)
    return None


def test_ranks_that_nothing_keeps_in_step_leave_at_the_same_place(monkeypatch):
    """The agreement by itself: threads as ranks, of very different pace, and any of them is asked at any time."""
    torch = pytest.importorskip("torch")
    from lightning_patches.patches.distributed.sigterm_at_batch_boundary import StopAgreement

    monkeypatch.setattr(StopAgreement, "poll_every", 0.02)
    for trial in range(8):
        chance = random.Random(trial)
        store, left = StoreOfOldTorch(torch.distributed.HashStore()), {}
        agreements = [StopAgreement(store, rank, 4, trial) for rank in range(4)]

        def work(rank, pace, agreement, left=left):
            left[rank] = where_a_rank_leaves(agreement, pace, random.Random(rank))
            agreement.end()

        threads = [
            threading.Thread(target=work, args=(rank, 0.001 * (1 + rank), agreements[rank])) for rank in range(4)
        ]
        for thread in threads:
            thread.start()
        for _ in range(1 + trial % 3):
            time.sleep(chance.random() * 0.2)
            agreements[chance.randrange(4)].request()
        for thread in threads:
            thread.join(30)
        assert len(left) == 4 and len(set(left.values())) == 1 and left[0] is not None, (trial, left)


def test_rank_that_is_left_without_an_answer_leaves(monkeypatch):
    torch = pytest.importorskip("torch")
    from lightning_patches.patches.distributed.sigterm_at_batch_boundary import StopAgreement

    monkeypatch.setattr(StopAgreement, "patience", 0.3)
    monkeypatch.setattr(StopAgreement, "poll_every", 0.01)
    agreement = StopAgreement(torch.distributed.HashStore(), 0, 2, 0)
    agreement.request()
    with pytest.warns(UserWarning, match="leaves without them"):
        while not agreement.before_batch():
            time.sleep(0.01)
    agreement.end()


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


def test_a_signal_connector_of_the_programs_own(tmp_path):
    variables = environment_of(Arm("pytorch-lightning", "2.6.6", shim=True), toggle=PATCH)
    status, output = execute([sys.executable, "-c", WITHOUT_SIGNALS], variables, 120, cwd=str(tmp_path))
    assert status == 0 and "trained 2" in output, output


PROOFS = (
    Proof(
        PATCH,
        hangs,
        case="plain",
        observed=only("statuses", "together"),
        recommended="callback",
        note="at which batch the ranks leave is a matter of time; that it is the same one is compared.",
    ),
)
