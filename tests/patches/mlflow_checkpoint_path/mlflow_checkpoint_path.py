"""Issues 20932, 20664 and 20822: MLFlowLogger gives checkpoints to MLflow, whose stand-in here takes text, as MLflow 3.

Cases: ``end`` (log_model=True: when all is done), ``all`` (log_model="all": with each checkpoint), ``prefix`` (with
checkpoint_path_prefix).
"""

import os
import posixpath
import sys
import tempfile
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import SimpleNamespace

SITE = tempfile.mkdtemp()
sys.path.append(SITE)
(Path(SITE) / "mlflow-3.1.0.dist-info").mkdir()
(Path(SITE) / "mlflow-3.1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mlflow\nVersion: 3.1.0\n")

import _scenario as scenario

GIVEN = []


class MlflowException(Exception):  # noqa: N818  MLflow's name
    """As MLflow raises it."""


class MlflowClient:
    def __init__(self, tracking_uri):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: SimpleNamespace(
            experiment_id="1", lifecycle_stage="active", info=SimpleNamespace(run_id="run")
        )

    def log_artifact(self, run_id, local_path, artifact_path=None):
        if posixpath.normpath(artifact_path) != artifact_path:
            raise MlflowException(f"Invalid artifact path: {artifact_path!r}")
        GIVEN.append([run_id, os.path.basename(local_path), artifact_path])

    def log_artifacts(self, run_id, local_dir, artifact_path=None):
        for name in sorted(os.listdir(local_dir)):
            self.log_artifact(run_id, name, artifact_path)


if __name__ == "__main__":
    names = ("mlflow", "mlflow.tracking", "mlflow.tracking.context")
    mlflow, tracking, context = (module_from_spec(ModuleSpec(name, None)) for name in names)
    tracking.MlflowClient, tracking.context, mlflow.tracking = MlflowClient, context, tracking
    mlflow.set_tracking_uri = lambda uri: None
    context.resolve_tags = lambda tags=None: tags
    sys.modules.update({module.__name__: module for module in (mlflow, tracking, context)})

    prefix = {"checkpoint_path_prefix": "kept/here"} if scenario.CASE == "prefix" else {}
    logger = scenario.pytorch("loggers").MLFlowLogger(
        log_model="all" if scenario.CASE == "all" else True, save_dir=SITE, **prefix
    )
    checkpoint = scenario.pytorch("callbacks").ModelCheckpoint(
        dirpath=os.environ.get("SCENARIO_OUT", SITE), filename="{epoch}", save_top_k=1
    )
    trainer = scenario.trainer(
        accelerator="cpu",
        max_epochs=2,
        limit_train_batches=1,
        limit_val_batches=0,
        logger=logger,
        callbacks=[checkpoint],
        enable_checkpointing=True,
    )
    with scenario.observing_errors():
        trainer.fit(scenario.pytorch("demos.boring_classes").BoringModel())
    scenario.observe(given=GIVEN, steps=trainer.global_step)
