"""What the program trusts: functions that checkpoints may name, and directories whose checkpoints may hold objects."""

from __future__ import annotations

import os

_LIGHTNINGS_OWN = frozenset({"lightning.pytorch.cli.instantiate_module", "pytorch_lightning.cli.instantiate_module"})
_trusted: set[str] = set()
_trusted_modules: set[str] = set()
_trusted_directories: set[str] = set()


def trust_instantiator(path: str) -> None:
    """Let checkpoints name this function as the one that makes the model or datamodule, in this process.

    Without it only ``LightningCLI``'s own is allowed (patch ``checkpoint-instantiator``). Call it in the script, before
    ``load_from_checkpoint``. There is no environment variable for it: what a file may call is for the program to say.

    Args:
        path: dotted path of the function, exactly as the checkpoint has it (``"my_package.factories.build"``).

    Raises:
        TypeError: ``path`` is not a string; the function itself is not accepted, because the file holds a name.
        ValueError: ``path`` has no module part.
    """
    if not isinstance(path, str):
        raise TypeError(f"trust_instantiator() takes a dotted path as a string, not {path!r}")
    if "." not in path.strip("."):
        raise ValueError(f"{path!r} is not a dotted path such as 'my_package.factories.build'")
    _trusted.add(path)


def is_trusted_instantiator(path: object) -> bool:
    """Whether a checkpoint may name ``path``. Looks at the text only."""
    return isinstance(path, str) and (path in _LIGHTNINGS_OWN or path in _trusted)


def trust_module(name: str) -> None:
    """Let the hyperparameters in checkpoints have this module imported, in this process.

    Without it only modules that the program has imported already may be named (patch ``checkpoint-class-imports``).
    Call it in the script, before ``load_from_checkpoint`` or before ``LightningCLI``.

    Args:
        name: dotted name of the module, such as ``"my_package.networks"``; its packages are imported with it.

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
    """Whether checkpoints may have ``name`` imported: a trusted module, or a package that one is in."""
    return any(trusted == name or trusted.startswith(f"{name}.") for trusted in _trusted_modules)


def trust_checkpoints(directory: str | os.PathLike[str]) -> None:
    """Let Lightning load any object from the checkpoints of this directory, in this process.

    With torch 2.6 and later, Lightning below 2.4.0 and from 2.6.0 on loads tensors and plain values only, and refuses a
    checkpoint with hyperparameters of classes of your own. Loading such objects runs code that the file names: trust a
    directory only if nobody else can write to it (patch ``trusted-checkpoint-load``). It counts for the files in it and
    below it, after symbolic links are followed; a link that leads out of it does not. ``weights_only=True``, where it
    is passed, is obeyed. There is no environment variable for it.

    Warns where others can write to the directory or replace it, as far as owner and mode tell.

    Args:
        directory: an existing local directory. Links in its path are followed now.

    Raises:
        TypeError: ``directory`` is not a path, or one in bytes.
        ValueError: it is not an existing directory, or it is the root of a file system.
    """
    named = os.fspath(directory)
    if not isinstance(named, str):
        raise TypeError(f"trust_checkpoints() takes a path as a string, not {directory!r}")
    path = os.path.realpath(named) if named else ""  # for which os.path takes the current directory
    if not os.path.isdir(path):
        raise ValueError(f"trust_checkpoints() takes an existing directory, which {path!r} is not")
    if os.path.dirname(path) == path:
        raise ValueError(f"{path!r} holds every file there is; name the directory that your checkpoints are in")
    open_to = _open_to_others(path)
    if open_to:
        from lightning_patches import notices

        notices.warn_once(
            f"trust_checkpoints {path}",
            f"Others can write to {open_to!r}, and what they put there can run their code here, since the script calls"
            f" trust_checkpoints({path!r}). Trust a directory that only you can write to.",
        )
    _trusted_directories.add(os.path.normcase(path))


def _open_to_others(directory: str) -> str:
    """The directory itself, or the next one above it, in which another user than root can put a file; "" if none."""
    if os.name != "posix":
        return ""
    import stat

    path = directory
    while True:
        status = os.stat(path)
        # In a sticky directory others can add files, and not rename or remove what is there.
        by_mode = stat.S_IMODE(status.st_mode) & _writable_by(status) and (
            path == directory or not status.st_mode & stat.S_ISVTX
        )
        if by_mode or status.st_uid not in (0, os.geteuid()):
            return path
        if os.path.dirname(path) == path:
            return ""
        path = os.path.dirname(path)


def _writable_by(status: os.stat_result) -> int:
    """The bits of a mode that let others write. A group that is named as this user is theirs alone."""
    import grp
    import pwd
    import stat

    try:
        if grp.getgrgid(status.st_gid).gr_name == pwd.getpwuid(os.geteuid()).pw_name:
            return stat.S_IWOTH
    except KeyError:  # a user or group without a name, as in containers
        pass
    return stat.S_IWOTH | stat.S_IWGRP


def trusted_checkpoint(path: object) -> str:
    """The file itself, links followed, if it lies in a directory that the program trusts; "" if not."""
    if not _trusted_directories:
        return ""
    from pathlib import Path  # here, as it costs a Python that trusts nothing the time

    if not isinstance(path, (str, Path)) or "://" in str(path) or "::" in str(path):
        return ""
    file = os.path.realpath(path)
    below = os.path.normcase(file)
    return file if any(below.startswith(os.path.join(trusted, "")) for trusted in _trusted_directories) else ""
