"""A stand-in for MLflow 3.1, for scenarios with MLFlowLogger: imported first, as Lightning looks for its metadata."""

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


def _put_in_place():
    names = ("mlflow", "mlflow.tracking", "mlflow.tracking.context", "mlflow.entities", "mlflow.utils.mlflow_tags")
    modules = {name: module_from_spec(ModuleSpec(name, None)) for name in (*names, "mlflow.utils")}
    mlflow, tracking, context, entities, tags = (modules[name] for name in names)
    tracking.MlflowClient, tracking.context, mlflow.tracking = MlflowClient, context, tracking
    mlflow.set_tracking_uri = lambda uri: None
    context.resolve_tags = lambda tags=None: tags
    entities.Metric = entities.Param = SimpleNamespace
    tags.MLFLOW_RUN_NAME = "mlflow.runName"
    sys.modules.update(modules)


_put_in_place()
