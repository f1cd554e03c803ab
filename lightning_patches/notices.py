"""Messages at run time: one line each, on rank zero, once."""

from __future__ import annotations

import os
import sys
import warnings

from lightning_patches.errors import LightningPatchesWarning, PatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional, Protocol

    class Options(Protocol):
        """The options of a selection; see :class:`lightning_patches.engine.toggle.Selection`."""

        @property
        def strict(self) -> bool: ...

        @property
        def quiet(self) -> bool: ...


_said: set[str] = set()
_get_selection: Optional[Callable[[], Optional[Options]]] = None

_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JSM_NAMESPACE_RANK")


def use_options_of(get_selection: Callable[[], Optional[Options]]) -> None:
    """Set the selection whose ``strict`` and ``quiet`` the functions of this module obey.

    Args:
        get_selection: returns the active selection, or ``None``.
    """
    global _get_selection
    _get_selection = get_selection


def _has(option: str) -> bool:
    selection = _get_selection() if _get_selection is not None else None
    return bool(getattr(selection, option, False))


def is_quiet() -> bool:
    """True if the active selection has ``quiet``."""
    return _has("quiet")


def rank() -> int:
    """Return the rank from the process group or from the launcher's variables; 0 without both. Never imports torch."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except AttributeError:
        pass  # another thread is importing torch
    for variable in _RANK_VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdigit():
            return int(value)
    return 0


def is_speaker() -> bool:
    """True in rank zero of the job, but not in its worker processes, nor in the command that starts the ranks."""
    return _is_first() and not is_child() and not _starts_ranks()


def _starts_ranks() -> bool:
    """True in Lightning's commands ``fabric run`` and ``lightning run``, which start rank zero as another process."""
    program, *arguments = getattr(sys, "argv", None) or [""]
    return os.path.splitext(os.path.basename(program))[0] in ("fabric", "lightning") and arguments[:1] == ["run"]


def is_child() -> bool:
    """True if :mod:`multiprocessing`, or its dill variant ``multiprocess``, started this process."""
    for name in ("multiprocessing.process", "multiprocess.process"):
        module = sys.modules.get(name)
        try:
            if module is None:
                continue
            # A spawned process first imports the program's modules. Until then, its parent process is not set.
            if module.parent_process() is not None or hasattr(module.current_process(), "_inheriting"):
                return True
        except AttributeError:
            pass  # another thread is importing the module
    # The fork server never has a parent process set.
    return any("multiprocessing.forkserver import main" in word for word in getattr(sys, "orig_argv", ())[:8])


def _is_first() -> bool:
    """True in rank zero of the job, also if the launcher sets only the node and the rank on the node."""
    return rank() == 0 and ("RANK" in os.environ or os.environ.get("NODE_RANK", "0") in ("", "0"))


def printable(text: str) -> str:
    """Return the text with control characters, line breaks and direction marks escaped.

    If they were removed, the characters around them could form a new escape sequence.
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def cut(text: str, most: int = 200) -> str:
    """Shorten ``text`` to ``most`` characters. A shortened text ends in "...".

    The cut is between two words, unless that would leave less than half of ``most``.
    """
    if len(text) <= most:
        return text
    kept, space, _ = text[: most - 3].rpartition(" ")
    return f"{kept}{space}..." if len(kept) > most // 2 else f"{text[: most - 3]}..."


def notice(message: str, urgent: bool = False, details: str = "") -> None:
    """Write one line to stderr, unless :func:`is_quiet` is true or :func:`is_speaker` is false.

    Never raises, since a closed stderr must not end a training.

    Args:
        message: the line.
        urgent: write it in every process, also under ``quiet``.
        details: more lines.
    """
    if urgent or (not is_quiet() and is_speaker()):
        say(message, details)


def notice_once(key: str, message: str) -> None:
    """Call :func:`notice` once per ``key`` and process."""
    if key not in _said:
        _said.add(key)
        notice(message)


def say(message: str, details: str = "") -> None:
    """Write one line to stderr, and then the lines of ``details``. Does nothing if stderr is closed.

    Writes to the file descriptor, not to the stream: if the stream's buffer can't be flushed at exit, Python ends with
    status 120.
    """
    lines = [f"lightning_patches: {printable(message)}", *(f"  {printable(line)}" for line in details.splitlines())]
    stream, line = sys.stderr, "\n".join(lines) + "\n"
    try:
        if stream is sys.__stderr__ and stream is not None:
            stream.flush()
            os.write(stream.fileno(), line.encode(stream.encoding or "utf-8", "backslashreplace"))
        else:
            stream.write(line)
            stream.flush()
    except Exception:
        pass


def warn_once(key: str, message: str, all_ranks: bool = False, stacklevel: int = 3) -> None:
    """Warn with :class:`LightningPatchesWarning`, once per ``key`` and process, on rank zero unless ``all_ranks``.

    Never raises. If the program turns warnings into errors, the message is a line on stderr.
    """
    if key in _said:
        return
    _said.add(key)
    if all_ranks or _is_first():
        try:
            warnings.warn(printable(message), LightningPatchesWarning, stacklevel=stacklevel)
        except Exception:
            say(message)


def report_misuse(key: str, message: str) -> None:
    """Warn once of a problem in the user's program that no patch can fix; raise under ``strict``.

    Raises:
        PatchError: under ``strict``, in every rank that sees it.
    """
    if _has("strict"):
        raise PatchError(printable(f"[rank {rank()}] {message}"))
    warn_once(key, f"[rank {rank()}] {message}", all_ranks=True, stacklevel=4)
