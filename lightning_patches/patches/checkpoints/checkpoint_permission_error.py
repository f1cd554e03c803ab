"""Saving a checkpoint without write permission raises an error."""

import errno
import importlib
import io
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream

_CLOUD_IO = "fabric.utilities.cloud_io"


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    # A wrapper can't see the error, because the original swallows it. So this function does the original's work.
    pipes = "pipe" in original.__code__.co_names  # since 2.6.5

    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        module = upstream_module(namespace, _CLOUD_IO)
        buffer = io.BytesIO()
        module.log.debug(f"Saving checkpoint: {filepath}")
        module.torch.save(checkpoint, buffer)
        fs, path = module.fsspec.core.url_to_fs(str(filepath))
        try:
            with fs.transaction:
                if pipes and module._is_object_storage(fs) and not _is_azure(module, fs):
                    fs.pipe(path, buffer.getvalue())
                else:
                    with fs.open(path, "wb") as file:
                        file.write(buffer.getvalue())
        except PermissionError as error:
            if isinstance(error.__context__, OSError) and error.__context__.errno == errno.EXDEV:
                raise RuntimeError(
                    f"{filepath} is on another device than the temporary directory, for which this fsspec is too old:"
                    ' pip install "fsspec[http]>=2025.5.0"'
                ) from error
            raise

    return _atomic_save


def _is_azure(module: Any, fs: Any) -> bool:
    return bool(module.module_available("adlfs")) and isinstance(
        fs, importlib.import_module("adlfs").AzureBlobFileSystem
    )


PATCH = Patch(
    group="correctness",
    changes_results=Effect("how it ends", "a checkpoint that cannot be written raises an error"),
    affected=(">=2.5.2,<=2.6.6",),
    targets=(Target(f"{_CLOUD_IO}:_atomic_save", _atomic_save),),
    upstream=Upstream(issues=(21800,), pull_requests=(21799,), merged=True),
    impact=Impact(
        "If a checkpoint cannot be written, for example to a read-only directory, there is no error: training "
        "continues, no file exists, and the result is lost.",
        ("no checkpoint is saved and there is no error", "PermissionError is swallowed in _atomic_save"),
        consequences=(
            Consequence(
                ("Checkpoint file not found: ...",),
                r"ckpt_path=['\"]best|best_model_path",
                "Lightning chose this path, and may have lacked permission to write the file",
            ),
        ),
    ),
    note="A program without permission to write its checkpoints fails at the first one, as with 2.5.1 and "
    "earlier. If it does not need the files, pass enable_checkpointing=False. Writable checkpoints are "
    "unchanged.",
)
