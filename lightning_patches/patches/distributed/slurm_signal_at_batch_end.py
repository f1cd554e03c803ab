"""SLURM's requeue signal saves at the end of the batch, not within an optimizer step."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_PENDING = "_requeue_signal"
"""Attribute of the signal connector: the signal that this rank received in a batch."""
_IS_DUE = "_handles_requeue_signal"
"""Attribute of the signal connector: the batch is over, and the signal is handled."""


def _handler(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _slurm_sigusr_handler_fn(self: Any, signum: int, _: Any) -> None:
        state = self.trainer.state
        if state.fn == "fit" and state.stage == "train" and not vars(self).get(_IS_DUE):
            vars(self)[_PENDING] = signum
        else:
            original(self, signum, _)

    return _slurm_sigusr_handler_fn


def _on_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_batch_end(self: Any) -> None:
        original(self)
        trainer = self.trainer
        environment = trainer._accelerator_connector.cluster_environment
        if trainer.state.stage != "train" or not getattr(environment, "auto_requeue", False):
            return
        connector = trainer._signal_connector
        signum = vars(connector).pop(_PENDING, 0)
        if not trainer.strategy.reduce_boolean_decision(bool(signum), all=False):
            return
        vars(connector)[_IS_DUE] = True
        try:
            connector._slurm_sigusr_handler_fn(signum, None)
        finally:
            del vars(connector)[_IS_DUE]

    return on_batch_end


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "the checkpoint of a job that SLURM requeues is that of a whole batch"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.connectors.signal_connector:_SignalConnector._slurm_sigusr_handler_fn", _handler),
        Target(
            "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector.on_batch_end", _on_batch_end
        ),
    ),
    upstream=Upstream(issues=(21406,), pull_requests=(21407,)),
    impact=Impact(
        "SLURM's requeue signal saves at once. If it arrives within an optimizer step, the checkpoint from which the "
        "job continues has some parameters of the step and others of the step before.",
        ("checkpoint of a requeued SLURM job holds half of an optimizer step",),
    ),
    opt_in="users who let SLURM requeue jobs, and whose batches are short beside the time that SLURM leaves",
    signs=("SLURMEnvironment",),
    note="Equivalent to a ModelCheckpoint that saves at the end of the batch. Opt-in, because a batch may take longer "
    "than SLURM waits, and because several ranks agree by a collective at the end of each batch. They then save after "
    "the same batch. A signal during validation is handled at once, as without the patch.",
)
