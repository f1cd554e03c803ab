"""MLFlowLogger uploads a checkpoint from a read-only working directory."""

from _expect import bug

GIVEN = [[name, "kept"] for name in ("kept.ckpt", "aliases.txt", "metadata.yaml")]

EXPECT = [bug(stock=": '/proc/test", patched={"given": GIVEN, "steps": 2})]

import os

import _mlflow as mlflow
import _scenario as scenario


def log_artifact(client, run_id, local_path, artifact_path):
    """Like MLflow 2, which accepts the Path from Lightning 2.5.1. Its folder has two possible names."""
    mlflow.GIVEN.append([os.path.basename(local_path), os.path.basename(artifact_path)])


if __name__ == "__main__":
    mlflow.MlflowClient.log_artifact = log_artifact
    logger = scenario.pl.loggers.MLFlowLogger(log_model=True, save_dir=mlflow.SITE)
    assert logger.experiment  # 2.0.0 starts the run only for its first value
    checkpoint = scenario.pl.callbacks.ModelCheckpoint(dirpath=mlflow.SITE, filename="kept")
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, logger=logger, callbacks=[checkpoint])
    os.chdir("/proc")  # not even root can write there
    with scenario.observing_errors():
        trainer.fit(scenario.BoringModel())
    scenario.observe(given=mlflow.GIVEN, steps=trainer.global_step)
