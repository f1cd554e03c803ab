"""Trust settings of the program: functions that checkpoints may name, and directories of trusted checkpoints."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes time at start-up
    from typing import BinaryIO, Optional

_LIGHTNINGS_OWN = frozenset({"lightning.pytorch.cli.instantiate_module", "pytorch_lightning.cli.instantiate_module"})
_trusted: set[str] = set()
_trusted_modules: set[str] = set()
_trusted_directories: dict[str, Optional[tuple[int, int]]] = {}
"""Resolved path of each directory -> its device and inode; ``None`` for a directory to which others may write."""


def trust_instantiator(path: str) -> None:
    """Allow checkpoints to name this function as the creator of the model or datamodule, in this process.

    By default, only the function of ``LightningCLI`` is allowed (patch ``checkpoint-instantiator``). Call
    ``trust_instantiator`` in the script before ``load_from_checkpoint``. There is no environment variable for it, since
    only the program may decide this.

    Args:
        path: dotted path of the function, exactly as written in the checkpoint (``"my_package.factories.build"``).

    Raises:
        TypeError: ``path`` is not a string. The function itself is not accepted, since the file contains a name.
        ValueError: ``path`` has no module part.
    """
    if not isinstance(path, str):
        raise TypeError(f"trust_instantiator() takes a dotted path as a string, not {path!r}")
    if "." not in path.strip("."):
        raise ValueError(f"{path!r} is not a dotted path such as 'my_package.factories.build'")
    _trusted.add(path)


def is_trusted_instantiator(path: object) -> bool:
    """True if a checkpoint may name ``path``. Compares only the text."""
    return isinstance(path, str) and (path in _LIGHTNINGS_OWN or path in _trusted)


def trust_module(name: str) -> None:
    """Allow the hyperparameters in checkpoints to import this module, in this process.

    Under the opt-in patch ``checkpoint-class-imports``, a checkpoint may name only modules that the program has already
    imported or has trusted with this function. Call it in the script before ``load_from_checkpoint`` or
    ``LightningCLI``.

    If other users can write to the module's file, the module is still refused, unless it is part of this Python
    environment.

    Args:
        name: dotted name of the module, such as ``"my_package.networks"``. Its parent packages are imported, too.

    Raises:
        TypeError: ``name`` is not a string.
        ValueError: ``name`` is not the name of a module.
    """
    if not isinstance(name, str):
        raise TypeError(f"trust_module() takes the dotted name of a module as a string, not {name!r}")
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name!r} is not the name of a module such as 'my_package.networks'")
    _trusted_modules.add(name)


def is_trusted_module(name: str) -> bool:
    """True if checkpoints may import ``name``: a trusted module, or a package that contains one."""
    return any(trusted == name or trusted.startswith(f"{name}.") for trusted in _trusted_modules)


def why_module_is_open(origin: Optional[str]) -> str:
    """Return why other users can change a module; "" if they can't.

    Args:
        origin: the module's file; ``None`` for a package without a file.
    """
    if not origin or not os.path.isfile(origin):
        return ""
    file = os.path.realpath(origin)
    environment = {os.path.join(os.path.realpath(prefix), "") for prefix in (sys.prefix, sys.base_prefix)}
    if any(file.startswith(prefix) for prefix in environment):
        return ""
    from lightning_patches import permissions

    return permissions.why_others_can_change_code(file)


def trust_checkpoints(directory: str | os.PathLike[str], shared: bool = False) -> None:
    """Allow Lightning to load any object from the checkpoints of this directory, in this process.

    With torch 2.6 and later, Lightning below 2.4.0 and from 2.6.0 on loads only tensors and plain values, and refuses a
    checkpoint with hyperparameters of your classes (patch ``trusted-checkpoint-load``). Loading such objects runs code
    that the file names, so each file is checked when it is loaded. Its objects are loaded only if this user and root
    are the only ones who can write to the file and to its parent directories, as ssh requires for its keys. If the
    check fails, or if the directory was recreated after this call, the file is loaded as without this call, and a
    warning names the problem and the command that fixes it.

    This applies to files in and below the directory, after symbolic links are followed, but not to links that lead out
    of it. ``weights_only=True`` and ``TORCH_FORCE_WEIGHTS_ONLY_LOAD`` take precedence. There is no environment variable
    for this setting.

    Args:
        directory: an existing local directory. Links in its path are followed now.
        shared: load the files even if others can write to them. These users can then run code as this user.

    Raises:
        TypeError: ``directory`` is not a path, or is a path in bytes.
        ValueError: it is not an existing directory, or it is the root of a file system.
    """
    named = os.fspath(directory)
    if not isinstance(named, str):
        raise TypeError(f"trust_checkpoints() takes a path as a string, not {directory!r}")
    path = os.path.realpath(named) if named else ""  # realpath("") is the current directory
    if not os.path.isdir(path):
        raise ValueError(f"trust_checkpoints() takes an existing directory, which {path!r} is not")
    if os.path.dirname(path) == path:
        raise ValueError(f"{path!r} is the root of the file system. Name the directory that your checkpoints are in.")
    from lightning_patches import notices, permissions

    status = os.stat(path)
    _trusted_directories[path] = None if shared else (status.st_dev, status.st_ino)
    why = "" if shared else permissions.why_others_can_change(path, sticky_from=path)
    if why:
        notices.warn_once(
            f"trust_checkpoints {path}", f"No objects will be loaded from {path!r}: {why}. {permissions.SHARED}"
        )


def open_trusted(path: object) -> tuple[Optional[BinaryIO], str]:
    """Open a checkpoint for reading if the program trusts it. The open file is checked, so that no other is loaded.

    Returns:
        The open file, which the caller must close, or ``None``. And the reason if a file in a trusted directory is
        refused, else "".
    """
    if not _trusted_directories:
        return None, ""
    from lightning_patches import permissions

    return permissions.open_trusted(path, _trusted_directories)
