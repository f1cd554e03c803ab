"""After min_epochs or min_steps refused a stop, log_every_n_steps still applies."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.callbacks.early_stopping_before_minimum import can_stop_early

_CONNECTOR = "pytorch.trainer.connectors.logger_connector.logger_connector"


def _should_update_logs(original: Callable[[Any], bool], namespace: str) -> Callable[[Any], bool]:
    def should_update_logs(self: Any) -> bool:
        should_log, state = original(self), vars(self.trainer)
        if not should_log or not state.get("should_stop") or can_stop_early(self.trainer.fit_loop):
            return should_log
        state["should_stop"] = False
        try:
            return original(self)
        finally:
            state["should_stop"] = True

    return should_update_logs


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "rows of steps that log_every_n_steps leaves out are not written"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTOR}:_LoggerConnector.should_update_logs", _should_update_logs, since="2.0.0"),
        Target(f"{_CONNECTOR}:LoggerConnector.should_update_logs", _should_update_logs, before="2.0.0"),
    ),
    upstream=Upstream(issues=(21705,)),
    impact=Impact(
        "Once a stop is requested before min_epochs or min_steps, metrics are written in every step, instead of every "
        "log_every_n_steps.",
        ("metrics are logged every step instead of log_every_n_steps after EarlyStopping with min_epochs",),
        would_tell="that trainer.should_stop was set before min_epochs or min_steps was reached",
    ),
    note="The step at which a stop is accepted is still logged. The opt-in patch early-stopping-before-minimum takes "
    "back stops of EarlyStopping only.",
)
