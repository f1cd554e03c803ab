"""LightningCLI reads checkpoints with custom objects from a directory that the script trusts."""

import os
import pickle
import pkgutil
from typing import Any, Callable

from lightning_patches import notices, trust
from lightning_patches.patch import Impact, Need, Patch, Target, Upstream


def _parse_ckpt_path(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def parse_ckpt_path(self: Any) -> None:
        command = self.config.get("subcommand")
        asked = self.config[command].get("ckpt_path") if command else None
        file, why_not = trust.open_trusted(asked)
        if file is None:
            try:
                original(self)
            except pickle.UnpicklingError:
                if why_not:
                    notices.warn_once(f"trusted-checkpoint-cli {why_not}", why_not)
                raise
            return
        from torch import serialization

        with file:
            # The original loads the path with weights_only=True, although the user did not request that.
            path = f"/dev/fd/{file.fileno()}" if os.path.isdir("/dev/fd") else os.path.realpath(str(asked))
            names = serialization.get_unsafe_globals_in_checkpoint(path)
            self.config[command]["ckpt_path"] = path
            try:
                with serialization.safe_globals([(pkgutil.resolve_name(name), name) for name in names]):
                    original(self)
            finally:
                self.config[command]["ckpt_path"] = asked

    return parse_ckpt_path


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=2.5.5,<=2.6.6",),
    targets=(Target("pytorch.cli:LightningCLI._parse_ckpt_path", _parse_ckpt_path),),
    upstream=Upstream(issues=(20310,)),
    impact=Impact(
        "LightningCLI with --ckpt_path fails on a checkpoint that contains objects of custom classes, even if they "
        "are not hyperparameters of the model, because it reads the file with weights_only=True.",
        ("Weights only load failed", "Unsupported global"),
        error="_pickle.UnpicklingError: Weights only load failed.",
    ),
    needs=(Need("torch.serialization:get_unsafe_globals_in_checkpoint"), Need("torch.serialization:safe_globals")),
    note="The patch does nothing until the script calls lightning_patches.trust_checkpoints(directory), "
    "because loading objects runs code that the file names. Lightning added the read that fails for issue "
    "20310. Without the patch, call torch.serialization.add_safe_globals with the classes in the file.",
    after=("cli-checkpoint-of-subclass",),
    around=("cli-checkpoint-of-other-class",),
)
