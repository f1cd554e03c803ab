"""``fabric/utilities/cloud_io.py``: reading and writing checkpoints."""

from __future__ import annotations

import errno
import importlib
import inspect
import io
import os
import pickle
from typing import Any, Callable

from lightning_patches import _runtime, trust
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches import _beside

_CLOUD_IO = "fabric.utilities.cloud_io"


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    takes_weights_only = "weights_only" in inspect.unwrap(original).__code__.co_varnames

    def load(path_or_url: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if (args[0] if args else kwargs.get("weights_only")) is not None:
            return original(path_or_url, map_location, *args, **kwargs)
        file = trust.trusted_checkpoint(path_or_url)
        if file and takes_weights_only:
            return original(file, map_location, weights_only=False)
        if file:
            module = upstream_module(namespace, _CLOUD_IO)
            with module.get_filesystem(file).open(file, "rb") as stream:
                return module.torch.load(stream, map_location=map_location, weights_only=False)
        begin = path_or_url.tell() if type(path_or_url) is io.BytesIO else 0
        try:
            return original(path_or_url, map_location)
        except pickle.UnpicklingError:
            _tell_what_is_refused(path_or_url, begin)
            raise

    return load


def _tell_what_is_refused(path_or_file: Any, begin: int) -> None:
    """Name the classes that torch has refused, and what allows them. Never raises; says nothing if there are none."""
    is_path = isinstance(path_or_file, (str, os.PathLike))
    if not is_path and type(path_or_file) is not io.BytesIO:
        return
    end = 0 if is_path else path_or_file.tell()
    try:
        import torch

        if not is_path:
            path_or_file.seek(begin)
        found = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path_or_file))
    except Exception:  # an older torch, or no file of torch's
        return
    finally:
        if not is_path:
            path_or_file.seek(end)
    if not found:
        return
    names = ", ".join(ascii(name)[1:-1] for name in found[:5]) + (", ..." if len(found) > 5 else "")
    hint = (
        f"{ascii(os.fspath(path_or_file)) if is_path else 'The checkpoint'} holds objects that torch does not load by"
        f" default: {names}. If you know the file, call torch.serialization.add_safe_globals([...]) with them"
    )
    if is_path:
        hint += ", or lightning_patches.trust_checkpoints(directory) if nobody else can write to its directory,"
    _runtime.warn_once("trusted-checkpoint-load", f"{hint} before loading it.")


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    # The original catches the error and drops it: nothing around it can tell. So its work is done here, as it does it.
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


def _write_beside(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        if not _beside.is_possible(filepath):
            original(checkpoint, filepath)
            return
        import torch

        with _beside.written(filepath) as file:
            torch.save(checkpoint, file)

    return _atomic_save


PATCHES = (
    Patch(
        name="trusted-checkpoint-load",
        title="Checkpoints with objects of your own load from a directory that the script trusts",
        group="compat",
        affected=(">=2.0.0,<2.4.0", ">=2.6.0,<=2.6.6"),
        targets=(Target(f"{_CLOUD_IO}:_load", _load),),
        calls=("fabric.utilities.cloud_io:get_filesystem()",),
        upstream=Upstream(pull_requests=(20010,), commit="bf25167bbf"),
        impact=Impact(
            "With torch 2.6 and later a checkpoint whose hyperparameters hold objects of your own classes cannot be "
            "loaded, neither to resume nor with load_from_checkpoint.",
            ("Weights only load failed", "Unsupported global", "weights_only"),
        ),
        equivalent_to="the same program with weights_only=False, or with TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1",
        note="Does nothing until the script says lightning_patches.trust_checkpoints(directory): loading objects runs "
        "code that the file names. Local files only, symbolic links are followed; weights_only, where it is passed, "
        "is obeyed. The official fix, which 2.6.0 has taken back, loads every file in this way, downloads included. "
        "The parts of sharded checkpoints (FSDP, DeepSpeed) are loaded as before.",
        relied_on="Nobody: without the call in the script every file is loaded, or refused, as before.",
        relied_on_tests=("tests/patches/test_trusted_checkpoint_load.py::test_everything_else_is_refused_as_before",),
    ),
    Patch(
        name="checkpoint-permission-error",
        title="Saving a checkpoint where it may not be written raises an error",
        group="correctness",
        affected=(">=2.5.2,<=2.6.6",),
        targets=(Target(f"{_CLOUD_IO}:_atomic_save", _atomic_save),),
        calls=("fabric.utilities.cloud_io:_is_object_storage()",),
        upstream=Upstream(issues=(21800,), pull_requests=(21799,), merged=True),
        impact=Impact(
            "Where a checkpoint may not be written (a read-only directory, storage that refuses it), nothing "
            "says so: training goes on, there is no file, and the result is lost.",
            ("no checkpoint is saved and there is no error", "PermissionError is swallowed in _atomic_save"),
        ),
        equivalent_to="the PermissionError that the file system raises when the same file is opened without Lightning",
        note="A program that goes on training where it may not write its "
        "checkpoints fails at the first of them, as with 2.5.1 and before.",
        relied_on="A program that may write its checkpoints writes them as before. One that goes on training "
        "where it may not, and can do without the files, fails at the first of them, as with 2.5.1 and before: it has "
        "to pass enable_checkpointing=False.",
        relied_on_tests=("tests/patches/test_checkpoint_permission_error.py::test_what_may_be_written_is_written",),
    ),
    Patch(
        name="checkpoint-written-once",
        title="A checkpoint is written straight to its directory, without copies in memory or TMPDIR",
        group="performance",
        affected=(">=2.4.0,<=2.6.6",),
        targets=(Target(f"{_CLOUD_IO}:_atomic_save", _write_beside),),
        upstream=Upstream(issues=(21253,), pull_requests=(21824,), commit="7b57f9c65b", merged=True),
        impact=Impact(
            "Saving a checkpoint takes memory for another copy of it, and as much space in the temporary directory: "
            "large ones run out of memory, or out of space on a small /tmp.",
            ("out of memory while saving a checkpoint", "No space left on device in /tmp while saving a checkpoint"),
        ),
        default=False,
        further_than_upstream="The official fix avoids the copy in memory. Here the file is also written in its own "
        "directory, and takes its name when it is complete, so that nothing is left for another device to copy.",
        note="For whoever runs out of memory, or out of space in TMPDIR, while a large checkpoint is saved. Opt-in, as "
        "the file does not go through fsspec: a file system class that is registered for local files (encryption, "
        "say) is not asked, and who watches the directory sees a second file, which a killed process leaves there. "
        "Local files only. An error while saving leaves the previous checkpoint in place.",
    ),
)
