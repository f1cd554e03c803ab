"""MLFlowLogger() is refused by MLflow 3.13 and later. A stand-in refuses directories as these do. Cases: "",
``allowed`` (the program sets MLFLOW_ALLOW_FILE_STORE), ``database``, ``given`` (tracking_uri="file:...")."""

from _expect import bug, patched, same

REFUSED = "set `MLFLOW_ALLOW_FILE_STORE=true`"

EXPECT = [
    bug(stock=REFUSED, like="allowed", compare=("run", "allowed")),
    same(["allowed", "database"], "other stores are unchanged"),
    same("given", "given directory is refused as on stock", REFUSED),
    patched(
        "",
        "default directory is warned of once",
        lambda seen: len(seen["warnings"]) == 1 and seen["warnings"][0].startswith("This run logs into ./mlruns"),
    ),
]

import os

import _mlflow as mlflow
import _scenario as scenario

VARIABLE = "MLFLOW_ALLOW_FILE_STORE"


class MlflowClient(mlflow.MlflowClient):
    def __init__(self, tracking_uri):
        if tracking_uri.startswith("file:") and os.environ.get(VARIABLE) != "true":
            raise mlflow.MlflowException(f"The filesystem backend is in maintenance mode, set `{VARIABLE}=true`")
        super().__init__(tracking_uri)


if __name__ == "__main__":
    mlflow.sys.modules["mlflow.tracking"].MlflowClient = MlflowClient
    uris = {"database": "sqlite:///mlflow.db", "given": "file:./mlruns"}
    if scenario.CASE == "allowed":
        os.environ[VARIABLE] = "true"
    with scenario.observing_errors(), scenario.observing_warnings():
        logger = scenario.pl.loggers.MLFlowLogger(tracking_uri=uris.get(scenario.CASE))
    scenario.observe(run=logger.run_id, allowed=os.environ.get(VARIABLE))
