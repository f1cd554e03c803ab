"""MLFlowLogger passes checkpoints to MLflow. Its stand-in takes strings, like MLflow 3. Cases: ``end`` (log_model=True:
at the end), ``all`` (log_model="all": with each checkpoint), ``prefix`` (with checkpoint_path_prefix)."""

from _expect import bug, fixed

EXPECT = [
    bug(
        ["end", "all"],
        stock="MlflowException: Invalid artifact path: ",
        patched=lambda seen: ["run", "epoch=1.ckpt", "epoch=1"] in seen["given"],
    ),
    fixed(
        "prefix",
        "prefix of the path is kept",
        stock="Invalid artifact path",
        patched={
            "given": [["run", name, "kept/here/epoch=1"] for name in ("epoch=1.ckpt", "aliases.txt", "metadata.yaml")]
        },
        alone=True,
        on=("2.5.1", "2.5.6"),
    ),
]

import os

import _mlflow as mlflow
import _scenario as scenario

if __name__ == "__main__":
    prefix = {"checkpoint_path_prefix": "kept/here"} if scenario.CASE == "prefix" else {}
    logger = scenario.pl.loggers.MLFlowLogger(
        log_model="all" if scenario.CASE == "all" else True, save_dir=mlflow.SITE, **prefix
    )
    checkpoint = scenario.pl.callbacks.ModelCheckpoint(
        dirpath=os.environ.get("SCENARIO_OUT", mlflow.SITE), filename="{epoch}", save_top_k=1
    )
    trainer = scenario.trainer(
        max_epochs=2, limit_train_batches=1, limit_val_batches=0, logger=logger, callbacks=[checkpoint]
    )
    with scenario.observing_errors():
        trainer.fit(scenario.BoringModel())
    scenario.observe(given=mlflow.GIVEN, steps=trainer.global_step)
