"""MLFlowLogger() logs into ./mlruns with MLflow 3.13 and later, too."""

import inspect
import os
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target

_VARIABLE = "MLFLOW_ALLOW_FILE_STORE"


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except Exception as error:
            if type(error).__name__ != "MlflowException" or _VARIABLE not in str(error) or _VARIABLE in os.environ:
                raise
            given = inspect.signature(original).bind(self, *args, **kwargs)
            given.apply_defaults()
            if given.arguments["tracking_uri"]:
                raise
            os.environ[_VARIABLE] = "true"
            original(self, *args, **kwargs)
            notices.warn_once(
                "mlflow-file-store",
                f"This run logs into {given.arguments['save_dir']}, as MLFlowLogger without a tracking_uri does. "
                f"MLflow 3.13 and later refuse directories unless {_VARIABLE}=true, which is now set. Set it "
                'for `mlflow ui`, too, or log into a database: MLFlowLogger(tracking_uri="sqlite:///mlflow.db").',
            )

    return init


PATCH = Patch(
    added="0.3.0",
    group="compat",
    affected=(">=2.0.0,<=2.6.6",),
    only_with=("mlflow>=3.13",),
    targets=(Target("pytorch.loggers.mlflow:MLFlowLogger.__init__", _init),),
    impact=Impact(
        "MLFlowLogger() without a tracking_uri logs into ./mlruns. From 3.13 on MLflow refuses such a file store "
        "unless it is allowed explicitly.",
        ("The filesystem tracking backend ... is in maintenance mode", "set `MLFLOW_ALLOW_FILE_STORE=true` to opt out"),
        error="mlflow.exceptions.MlflowException: The filesystem tracking backend (e.g., './mlruns') is in "
        "maintenance mode and will not receive further updates.",
    ),
    note="Equivalent to MLFLOW_ALLOW_FILE_STORE=true, which the patch sets for this process and its children if "
    "MLflow has refused the directory; it warns then. A tracking_uri that you pass is refused as without the patch: "
    'set the variable, or use a database, tracking_uri="sqlite:///mlflow.db". Tried with mlflow-skinny 3.17.2.',
)
