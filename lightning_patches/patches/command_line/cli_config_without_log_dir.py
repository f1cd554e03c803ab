"""LightningCLI saves its config in default_root_dir if the logger has no directory."""

import os
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, trainer: Any, pl_module: Any, stage: str) -> None:
        try:
            original(self, trainer, pl_module, stage)
        except AssertionError:
            if trainer.log_dir is not None:
                raise
            _save(self, trainer, namespace)
            if hasattr(self, "save_to_log_dir"):
                self.save_to_log_dir = False  # makes the original only call save_config
                original(self, trainer, pl_module, stage)
                self.save_to_log_dir = True
            self.already_saved = True

    return setup


def _save(callback: Any, trainer: Any, namespace: str) -> None:
    """Save the config where the original saves it with Trainer(logger=False)."""
    directory = trainer.default_root_dir
    path = os.path.join(directory, callback.config_filename)
    fs = upstream_module(namespace, "pytorch.cli").get_filesystem(directory)
    exists = not callback.overwrite and trainer.strategy.broadcast(trainer.is_global_zero and fs.isfile(path))
    if exists:
        raise RuntimeError(
            f"{type(callback).__name__} expected {path} to NOT exist, and does not overwrite the config of a "
            "previous run. Delete the file, set `LightningCLI(save_config_callback=None)` to save no config, or set "
            '`LightningCLI(save_config_kwargs={"overwrite": True})`.'
        )
    if trainer.is_global_zero:
        fs.makedirs(directory, exist_ok=True)
        callback.parser.save(
            callback.config, path, skip_none=False, overwrite=callback.overwrite, multifile=callback.multifile
        )


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(Target("pytorch.cli:SaveConfigCallback.setup", _setup),),
    upstream=Upstream(issues=(20615,)),
    impact=Impact(
        "LightningCLI with a logger that has no save_dir, such as the logger of a remote service, fails with "
        "an AssertionError without a message before training.",
        ("AssertionError at assert log_dir is not None in SaveConfigCallback",),
        error="AssertionError",
        frames=("/pytorch/cli.py",),
        would_tell="if the last line of the traceback is `assert log_dir is not None` in cli.py",
    ),
    note="The patch saves the config in default_root_dir, as Trainer(logger=False) does. No program can rely "
    "on the behavior without the patch, since it is an error. The workaround, SaveConfigCallback with "
    "save_to_log_dir=False, is unchanged.",
)
