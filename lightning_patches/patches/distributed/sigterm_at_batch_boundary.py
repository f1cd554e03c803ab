"""After SIGTERM, all ranks stop before the same batch, with exit status 143.

A signal handler must not run a collective. Before every batch, Lightning broadcasts rank zero's flag. With that, all
ranks stop together if rank zero knows about the signal. So the handler sets a flag, and a thread reports it to rank
zero through the process group's key-value store within half a second.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import threading
from typing import Any, Callable, Optional

from lightning_patches.engine.distributions import module_name, upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTOR = "pytorch.trainer.connectors.signal_connector"

_REQUEST = "_lightning_patches_stop_request"

_STATUS = 128 + signal.SIGTERM

_runs = itertools.count()


class StopRequest:
    """The state of SIGTERM in the ranks of one ``fit``.

    Args:
        store: the process group's store; only ``add`` is used. Only the thread uses it, since a signal may arrive while
            the training uses the store.
        rank: this rank.
        run: number of the Trainer's run, the same in all ranks.

    Attributes: received: True if this rank's signal handler was called. told: True in rank zero if another rank has
        reported the signal. left: True if this rank has stopped because of the signal.
    """

    poll_every = 0.5

    def __init__(self, store: Any, rank: int, run: int) -> None:
        self.received = self.told = self.left = False
        self._store, self._rank, self._key = store, rank, f"lightning_patches/sigterm/{run}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="sigterm-request", daemon=True)
        self._process = os.getpid()
        self._thread.start()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of the Trainer gets None

    def receive(self) -> bool:
        """Record the signal (called by the signal handler). Return False in a process that was forked from a rank."""
        self.received = True
        return os.getpid() == self._process

    def is_due(self) -> bool:
        """True if this rank must broadcast that the signal was received. Only rank zero's value counts."""
        return self.told or (self.received and self._rank == 0)

    def end(self) -> None:
        """Stop the thread when the run ends in this rank, also after an error."""
        self._ended.set()
        if os.getpid() == self._process:
            self._thread.join(2)

    def _serve(self) -> None:
        with contextlib.suppress(Exception):  # the rank that hosts the store is gone; the collectives will raise
            while not (self.told or self._ended.wait(self.poll_every)):
                if self._rank == 0:
                    self.told = self._store.add(self._key, 0) > 0
                elif self.received:
                    self._store.add(self._key, 1)
                    return


def _begin(trainer: Any) -> Optional[StopRequest]:
    """Return a stop request for the fit that starts; ``None`` without several ranks that share a store."""
    import torch.distributed as dist

    are_several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if not are_several or trainer.state.fn != "fit":
        return None
    run = next(_runs)
    try:
        store = dist.distributed_c10d._get_default_store()
        store.add("lightning_patches/sigterm", 0)
    except Exception:  # a backend without a store, such as MPI
        return None
    return StopRequest(store, dist.get_rank(), run)


def _of(connector: Any) -> Optional[StopRequest]:
    # A custom connector may have __slots__, or define __getattr__.
    request: Optional[StopRequest] = getattr(connector, "__dict__", {}).get(_REQUEST)
    return request


def _register(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def register_signal_handlers(self: Any) -> None:
        before = _end(self)  # None in a first run
        vars(self)[_REQUEST] = request = _begin(self.trainer)
        original(self)
        if before is not None and before.received and not before.left:  # that run had no further batch
            self.received_sigterm = request is None or not request.receive()

    return register_signal_handlers


def _teardown(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def teardown(self: Any) -> None:
        original(self)
        _end(self)

    return teardown


def _end(connector: Any) -> Optional[StopRequest]:
    request = _of(connector)
    if request is not None:
        request.end()
    return request


def _notify(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    log = logging.getLogger(module_name(namespace, _CONNECTOR))

    def _sigterm_notifier_fn(self: Any, signum: int, _: Any) -> None:
        trainer = self.trainer
        request = _of(trainer._signal_connector)
        if trainer.state.fn == "fit" and (request is None or trainer.world_size == 1):
            return original(self, signum, _)
        log.info(f"[rank: {trainer.local_rank}] Received SIGTERM: {signum}")
        is_first = not (self.received_sigterm or (request is not None and request.received))
        launcher = trainer.strategy.launcher
        if is_first and launcher is not None:
            launcher.kill(signum)
        if request is None or not request.receive():
            self.received_sigterm = True  # a standalone evaluation checks it before each batch
        return None

    return _sigterm_notifier_fn


def _before_batch(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _broadcast_sigterm_tensor(self: Any) -> None:
        connector = self.trainer._signal_connector
        request = _of(connector)
        if request is None:
            return original(self)
        if request.is_due():
            connector.received_sigterm = True
        ends = upstream_module(namespace, "pytorch.utilities.exceptions").SIGTERMException
        try:
            original(self)
        except ends:
            request.left = connector.received_sigterm = True
            raise ends(_STATUS) from None

    return _broadcast_sigterm_tensor


PATCH = Patch(
    group="hang",
    changes_results=Effect(
        "how it ends",
        "after SIGTERM in a run with several ranks, the batch at which they stop and the files that they leave",
    ),
    affected=(">=2.5.2,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}:_SignalConnector.register_signal_handlers", _register),
        Target(f"{_CONNECTOR}:_SignalConnector.teardown", _teardown),
        Target(f"{_CONNECTOR}:_SignalConnector._sigterm_notifier_fn", _notify),
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop._broadcast_sigterm_tensor", _before_batch),
    ),
    upstream=Upstream(issues=(21487,), pull_requests=(20825,), others=((20825, "2.5.2"),)),
    impact=Impact(
        "If torchrun or a scheduler sends SIGTERM to the ranks that it started, training hangs until SIGKILL, "
        "without the checkpoint that Lightning saves on preemption.",
        ("hangs after Received SIGTERM: 15", "_broadcast_sigterm_tensor"),
    ),
    note="trainer.received_sigterm becomes true before the batch at which all ranks stop, up to a second after "
    "the signal. A validation within fit finishes first, as in upstream. In validate, test and predict, "
    "each rank that got the signal stops at its next batch. With one device nothing changes. As without "
    "the patch, SIGTERM in setup, on_fit_start, on_fit_end or teardown, where Lightning has no handler, "
    "ends the process immediately without a checkpoint. SLURM's requeue signal (SIGUSR1) to a single rank "
    "still hangs all ranks, because that rank saves within its signal handler. From 2.5.2 on, upstream "
    "broadcasts in the signal handler and before every batch. With the patch, the handler sets a flag "
    "that reaches rank zero through the process group's store, and upstream's broadcast before the next "
    "batch informs all ranks. Without the patch, let a callback all-reduce a signal flag at every batch.",
)
