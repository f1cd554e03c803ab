"""After SIGTERM, all ranks stop before the same batch, with exit status 143.

A signal handler must not run a collective, and a broadcast before every batch is a high price for something that
happens once. Here the handler sets a flag. A thread beside the training looks at the process group's key-value store
twice a second; once a rank has asked there, the ranks agree on a batch and all of them leave before it:

1. Each rank's thread publishes a *limit*, the next batch after the one where its training is, and the training promises
   to go no further before the stop is known. The thread does this also for a training that waits in a collective, so
   nobody waits for a rank that cannot answer.
2. When all limits are there, rank zero publishes the largest: nobody has passed it, and everybody reaches it.
3. Each rank says that it knows, waits until all do, and raises ``SIGTERMException``. So the store, which may live in
   one of the ranks, is there for as long as somebody needs it.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import signal
import threading
import time
from typing import Any, Callable, Optional

from lightning_patches import notices
from lightning_patches.engine.distributions import module_name, upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.signal_connector"

_TRAINING_LOOP = "pytorch.loops.training_epoch_loop"

_FIT_LOOP = "pytorch.loops.fit_loop"

_AGREEMENT = "_lightning_patches_agreement"

_STATUS = 128 + signal.SIGTERM

_runs = itertools.count()


class StopAgreement:
    """The batch before which all ranks leave, once one of them was asked to. One per ``fit``.

    Args:
        store: the process group's store, of which ``set``, ``get`` and ``add`` are used: below torch 2.3 it has no
            ``check``, and ``compare_set`` is a segmentation fault. Only the thread talks to it.
        rank: this rank.
        world_size: number of ranks.
        run: which run of the Trainer this is, the same number in all ranks.

    Attributes:
        requested: set by the signal handler of this rank.
        left: this rank was told to leave.
        broken: the store is gone, and no agreement is possible any more.
    """

    poll_every = 0.5
    patience = 15.0
    """Seconds that a rank waits for the others, at most. What sends SIGTERM often sends SIGKILL 30 s later."""

    def __init__(self, store: Any, rank: int, world_size: int, run: int) -> None:
        self.requested = self.left = self.broken = False
        self._at = 0
        self._limit = math.inf
        self._stop: Optional[float] = None
        self._all_know = self._rests = False
        self._store, self._rank, self._world_size = store, rank, world_size
        self._prefix = f"lightning_patches/sigterm/{run}/"
        self._ended = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="sigterm-agreement", daemon=True)
        self._thread.start()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of the Trainer has none

    # ------------------------------------------------------------ the training's side

    def request(self) -> bool:
        """Called by the signal handler. ``False`` where there is nobody to agree with."""
        self.requested = True
        return not self.broken and os.getpid() == self._process

    def before_batch(self) -> bool:
        """A batch or the next epoch is about to begin. ``True``: leave now, as all ranks do."""
        self._rests = False
        self._at += 1
        self.left = self._limit < math.inf and self._settle()
        return self.left

    def rest(self) -> None:
        """No batch follows, but perhaps a search's: the store may go with the rank that has it, and torch says so."""
        self._rests = True

    def end(self) -> None:
        """The run is over in this rank: by an error, or because everything is done."""
        self._ended.set()
        if os.getpid() == self._process:
            self._thread.join(2)

    def _settle(self) -> bool:
        deadline = time.monotonic() + self.patience
        while self._stop is None and self._at >= self._limit:
            if time.monotonic() > deadline:
                notices.warn_once(
                    "sigterm-alone",
                    f"[rank {self._rank}] SIGTERM: not all of the other ranks answered within {self.patience:.0f} s, so"
                    " this rank leaves without them. If they stay, end them with SIGKILL.",
                    all_ranks=True,
                )
                return True
            time.sleep(0.01)
        if self._stop is None or self._at < self._stop:
            return False
        while not self._all_know and time.monotonic() < deadline:
            time.sleep(0.01)
        return True

    # ------------------------------------------------------------ the thread's side

    def _serve(self) -> None:
        try:
            self._agree()
        except Exception:  # the store's rank is gone: what is left to do is to leave as well, if that was asked for
            self.broken = True
            if self.requested or self._limit < math.inf:
                self._stop, self._all_know = 0, True
                self._limit = 0

    def _agree(self) -> None:
        store, prefix = self._store, self._prefix
        while not (self.requested or (not self._rests and store.add(prefix + "requests", 0))):
            if self._ended.wait(self.poll_every):
                # Nobody will hear from this rank again.
                return self._publish_stop(math.inf) if self._rank == 0 or not self._rests else None
        store.add(prefix + "requests", 1)
        self._publish_limit()
        while not store.add(prefix + "stops", 0):
            if self._ended.wait(0.02):
                return self._publish_stop(math.inf)
            if self._rank == 0 and store.add(prefix + "limits", 0) == self._world_size:
                limits = [float(store.get(f"{prefix}limit/{rank}")) for rank in range(self._world_size)]
                self._publish_stop(max(limits))
        self._stop = float(store.get(prefix + "stop"))
        known = store.add(prefix + "known", 1)
        while known < self._world_size and not self._ended.wait(0.02):
            known = store.add(prefix + "known", 0)
        self._all_know = True

    def _publish_limit(self) -> None:
        while True:
            # The training writes where it is and then reads the limit; here it is the other way round. So one of the
            # two notices, and a limit that the training may have passed unnoticed is replaced before it is published.
            self._limit = self._at + 1
            if self._at < self._limit:
                break
        self._store.set(f"{self._prefix}limit/{self._rank}", str(self._limit))
        self._store.add(self._prefix + "limits", 1)

    def _publish_stop(self, stop: float) -> None:
        """The first rank that comes by decides."""
        if self._store.add(self._prefix + "stops", 1) == 1:
            self._store.set(self._prefix + "stop", str(stop))


def _begin(trainer: Any) -> Optional[StopAgreement]:
    """An agreement for the fit that begins, where there are several ranks with a store that they share. Without one
    Lightning does what it did."""
    import torch.distributed as dist

    if trainer.state.fn != "fit" or not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return None
    run, size = next(_runs), trainer.world_size
    if dist.get_world_size() != size:
        return None
    try:
        store = dist.distributed_c10d._get_default_store()
        store.add("lightning_patches/sigterm", 0)
    except Exception:  # a backend without a store, such as MPI
        return None
    return StopAgreement(store, dist.get_rank(), size, run)


def _of(trainer: Any) -> Optional[StopAgreement]:
    # A connector of the program's own may have no room for it, or answer whatever it is asked.
    agreement: Optional[StopAgreement] = getattr(trainer._signal_connector, "__dict__", {}).get(_AGREEMENT)
    return agreement


def _leave_together(trainer: Any, namespace: str) -> None:
    agreement = _of(trainer)
    if agreement is not None and agreement.before_batch():
        trainer._signal_connector.received_sigterm = True
        raise upstream_module(namespace, "pytorch.utilities.exceptions").SIGTERMException(_STATUS)


# ---------------------------------------------------------------- where Lightning comes by


def _register(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def register_signal_handlers(self: Any) -> None:
        before = _end(self.trainer)  # there is none in a first run
        vars(self)[_AGREEMENT] = agreement = _begin(self.trainer)
        original(self)
        if before is not None and before.requested and not before.left:  # too late for the ranks to agree on a batch
            self.received_sigterm = agreement is None or not agreement.request()

    return register_signal_handlers


def _teardown(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def teardown(self: Any) -> None:
        original(self)
        _end(self.trainer)

    return teardown


def _end(trainer: Any) -> Optional[StopAgreement]:
    agreement = _of(trainer)
    if agreement is not None:
        agreement.end()
    return agreement


def _notify(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    log = logging.getLogger(module_name(namespace, _CONNECTOR))

    def _sigterm_notifier_fn(self: Any, signum: int, _: Any) -> None:
        trainer = self.trainer
        agreement = _of(trainer)
        if agreement is None and trainer.state.fn == "fit":
            return original(self, signum, _)
        log.info(f"[rank: {trainer.local_rank}] Received SIGTERM: {signum}")
        is_first = not (self.received_sigterm or (agreement is not None and agreement.requested))
        launcher = trainer.strategy.launcher
        if is_first and launcher is not None:
            launcher.kill(signum)
        if agreement is None or not agreement.request():
            self.received_sigterm = True  # an evaluation by itself looks at it before each batch

    return _sigterm_notifier_fn


def _before_batch(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _broadcast_sigterm_tensor(self: Any) -> None:
        if _of(self.trainer) is None:
            original(self)
        else:
            _leave_together(self.trainer, namespace)

    return _broadcast_sigterm_tensor


def _after_epoch(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any) -> None:
        original(self)
        _leave_together(self.trainer, namespace)

    return on_advance_end


def _after_training(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_end(self: Any) -> None:
        agreement = _of(self.trainer)
        if agreement is not None:
            agreement.rest()
        original(self)

    return on_run_end


PATCH = Patch(
    name="sigterm-at-batch-boundary",
    title="After SIGTERM, all ranks stop before the same batch, with exit status 143",
    group="hang",
    changes_results=Effect("how it ends", "after SIGTERM, where several ranks stop, and with which files"),
    affected=(">=2.5.2,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}:_SignalConnector.register_signal_handlers", _register),
        Target(f"{_CONNECTOR}:_SignalConnector.teardown", _teardown),
        Target(f"{_CONNECTOR}:_SignalConnector._sigterm_notifier_fn", _notify),
        Target(f"{_TRAINING_LOOP}:_TrainingEpochLoop._broadcast_sigterm_tensor", _before_batch),
        Target(f"{_FIT_LOOP}:_FitLoop.on_advance_end", _after_epoch),
        Target(f"{_FIT_LOOP}:_FitLoop.on_run_end", _after_training),
    ),
    calls=(
        "pytorch.strategies.launchers.subprocess_script:_SubprocessScriptLauncher.kill()",
        "pytorch.strategies.strategy:Strategy.launcher()",
        "pytorch.trainer.trainer:Trainer.local_rank()",
        "pytorch.trainer.trainer:Trainer.strategy()",
        "pytorch.trainer.trainer:Trainer.world_size()",
        "pytorch.utilities.exceptions:SIGTERMException()",
    ),
    upstream=Upstream(issues=(21487,), pull_requests=(20825,), others=((20825, "2.5.2"),)),
    impact=Impact(
        "SIGTERM to ranks that were started by torchrun or a scheduler makes the training hang until SIGKILL, "
        "without the checkpoint on preemption; and all multi-GPU training pays a broadcast and a device "
        "synchronization per batch for it.",
        (
            "hangs after Received SIGTERM: 15",
            "_broadcast_sigterm_tensor",
            "training slower after upgrade to 2.5.2",
        ),
    ),
    further_than_upstream="From 2.5.2 on, upstream broadcasts in the signal handler and before every batch. Here "
    "the handler sets a flag, and the ranks agree through the process group's store.",
    equivalent_to="a custom signal that a callback all-reduces at every batch",
    note="trainer.received_sigterm becomes true at the batch before which all ranks leave, up to a second after "
    "the signal. A validation within fit is brought to its end first, as upstream does. In validate, test and predict "
    "each rank that got the signal leaves at its next batch. With one device nothing changes. As on stock, SIGTERM in "
    "setup, on_fit_start, on_fit_end or teardown, where Lightning has no handler, ends the process at once, without a "
    "checkpoint; and SLURM's requeue (SIGUSR1) by one rank alone hangs all: that rank saves within its signal handler.",
    relied_on="Training in one process is as before. With several ranks, code that polls "
    "trainer.received_sigterm sees it when all ranks leave, up to a second after the signal, not at once.",
    relied_on_tests=("tests/patches/test_sigterm_at_batch_boundary.py::test_one_process_is_as_before",),
)
