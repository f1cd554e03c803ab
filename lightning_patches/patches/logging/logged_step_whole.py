"""Loggers get a step that was logged with self.log as an int."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CONNECTORS = "pytorch.trainer.connectors.logger_connector.logger_connector"


def _log_metrics(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_metrics(self: Any, metrics: Any, step: Optional[int] = None) -> None:
        if step is not None or "step" not in metrics or not self.trainer.loggers:
            return original(self, metrics, step)
        self._logged_metrics.update(metrics)  # includes the step, as without the patch
        return original(self, {name: metrics[name] for name in metrics if name != "step"}, int(metrics["step"]))

    return log_metrics


PATCH = Patch(
    added="0.2.0",
    group="crash",
    changes_results=Effect("files", "the step is written as an integer"),
    affected=(">=1.8.0,<2.5.2",),
    targets=(
        Target(f"{_CONNECTORS}:_LoggerConnector.log_metrics", _log_metrics, since="2.0.0"),
        Target(f"{_CONNECTORS}:LoggerConnector.log_metrics", _log_metrics, before="2.0.0"),
    ),
    upstream=Upstream(
        issues=(20692,),
        pull_requests=(20830,),
        commit="3d398240d2",
        fixed_in="2.5.2",
        tests=("tests/tests_pytorch/trainer/connectors/test_logger_connector.py::test_uses_step_metric",),
    ),
    impact=Impact(
        "With self.log('step', ...), loggers get the step as a float: loggers that require an int fail, and "
        "CSVLogger writes 3.0.",
        ("step can be a float", "TypeError: 'float' object cannot be interpreted as an integer"),
        error="TypeError: 'float' object cannot be interpreted as an integer",
    ),
    opt_in="users who log a value named step and have a logger that does not accept a float",
    note="Opt-in because the files of loggers that accept a float change.",
)
