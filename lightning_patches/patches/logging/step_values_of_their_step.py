"""A value that is logged in a step is written to the loggers at that step only."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector:_LoggerConnector"


def _update_step_metrics(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_step_metrics(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        trainer = self.trainer
        if (
            trainer.training
            and trainer.lightning_module.automatic_optimization
            and trainer.fit_loop._should_accumulate()
        ):
            return
        for metric in trainer._results.values():
            metric._forward_cache = None

    return update_step_metrics


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "rows lack values that were logged in earlier steps"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}.update_train_step_metrics", _update_step_metrics),
        Target(f"{_CONNECTOR}.update_eval_step_metrics", _update_step_metrics),
    ),
    impact=Impact(
        "A value that is logged with on_step=True in some batches only is written again at each later step of the "
        "epoch.",
        (
            "a metric that is logged every few steps has a value at each step",
            "self.log under an if is repeated at later steps",
        ),
        would_tell="that a value is not logged in each step",
    ),
    opt_in="users who log a value in some steps only",
    note="Opt-in because rows of the logger lose these values. With log_every_n_steps, a value is written only if its "
    "step is. callback_metrics and the progress bar keep the last value.",
)
