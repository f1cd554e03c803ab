"""The entry points that Python and Lightning call in an environment with this package.

This is a separate package because importing ``lightning_patches`` activates the patches. Only the user may do that, and
not a start of Python or a ``Trainer()``. An import without activation is no solution: it would turn the user's later
``import lightning_patches`` into a no-op.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # this module runs at every start of Python, and imports as little as possible
    from typing import Any

VARIABLE = "LIGHTNING_PATCHES"
LAUNCHED_FOR = "_LIGHTNING_PATCHES_FOR"
PARENT = "_LIGHTNING_PATCHES_PARENT"
_NOTHING = frozenset({"0", "off", "false", "no", "none"})
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JSM_NAMESPACE_RANK")

_warned = False


def start() -> None:
    """Entry point of the ``.start`` file (PEP 829) that ``lightning-patches autostart enable`` writes."""
    if _wanted():
        import lightning_patches  # noqa: F401


def callbacks() -> list[Any]:
    """Entry point of Lightning's groups ``*.callbacks_factory``, called at every ``Trainer()`` and ``Fabric()``.

    Warns once in each rank if this process is not patched although it should be: because LIGHTNING_PATCHES is set, the
    script imports ``lightning_patches`` lazily, or this is a worker of a program that imports it.

    Returns:
        No callback.
    """
    global _warned
    if _warned or not (_wanted() or not _items() and (_is_lazy() or _is_worker_of_patched())):
        return []
    startup: Any = sys.modules.get("lightning_patches.activation.startup")
    if startup is None or not startup.is_settled():
        _warned = True
        _warn(startup is not None)
    return []


def _wanted() -> bool:
    """True if LIGHTNING_PATCHES requests patches.

    A copy of ``lightning_patches.engine.words.asks_for_patches``, whose import would activate the patches.
    """
    if sys.flags.ignore_environment and LAUNCHED_FOR not in os.environ:  # python -E or -I, except under `run`
        return False
    items = _items()
    return bool(items) and not (len(items) == 1 and items[0] in _NOTHING)


def _items() -> list[str]:
    return os.environ.get(VARIABLE, "").replace(",", " ").lower().split()


def _is_worker_of_patched() -> bool:
    """Return True in a worker of a program that has activated the patches by an import.

    A worker that does not run the program's script does not import the package. In workers of some libraries, the
    launcher's ``sitecustomize`` imports it. Other workers stay unpatched, such as ranks that are spawned by a script
    with the import below its ``__main__`` guard. Activation at this point would be too late, since unpatched functions
    have already created this ``Trainer`` and its callbacks. Other scripts that the program starts do not count as
    workers.
    """
    if PARENT not in os.environ or sys.flags.ignore_environment:
        return False
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return True
    main = sys.modules.get("__main__")
    return getattr(main, "__spec__", None) is not None or not hasattr(main, "__file__")


def _is_lazy() -> bool:
    """Return True if the script imports the package lazily (Python 3.15) and has not used it yet."""
    return "lightning_patches" in getattr(sys, "lazy_modules", ()) and "lightning_patches" not in sys.modules


def _warn(loaded: bool) -> None:
    rank = next((os.environ[name] for name in _RANK_VARIABLES if os.environ.get(name)), "0")
    cause = "the program that started this worker is patched"
    if _items():
        value = os.environ[VARIABLE]
        value = value if len(value) <= 200 else value[:197] + "..."
        cause = f"{VARIABLE}={value if value.isprintable() else ascii(value)}"
    elif _is_lazy():
        cause = "the script imports lightning_patches"
    if loaded:
        advice = "lightning_patches was imported, but could not activate the patches. Read its message above."
    elif _is_lazy():
        advice = (
            "The import is lazy: Python 3.15 delays it until the script uses it. Write it without `lazy`, or call "
            "`lightning_patches.activate()` below it."
        )
    elif LAUNCHED_FOR in os.environ:
        major, minor = sys.version_info[:2]
        if os.environ[LAUNCHED_FOR] == f"{major}.{minor} {os.path.realpath(sys.prefix)}":
            advice = (
                "Python did not run the sitecustomize of `lightning-patches run`: PYTHONPATH was changed or is "
                "ignored, or another tool's sitecustomize came first. Run `lightning-patches autostart enable` once "
                "in this environment, or put that tool in front of `lightning-patches run`."
            )
        else:
            advice = (
                "`lightning-patches run` acts in the environment it belongs to, and this Python belongs to another: "
                f"{sys.executable}. Use the `lightning-patches` of this Python."
            )
    elif PARENT in os.environ:
        advice = (
            "It did not run the script that imports lightning_patches. Put the import into the function that the "
            "worker calls, or start the program with `lightning-patches run`."
        )
    else:
        advice = (
            "Put `import lightning_patches` at the top of the script, or start it with `lightning-patches run`, or run "
            "`lightning-patches autostart enable` once in this environment."
        )
    stream = sys.stderr
    line = f"lightning_patches: [rank {rank}] {cause}, but this process is not patched. {advice}\n"
    try:
        if stream is sys.__stderr__ and stream is not None:
            # Don't write to sys.stderr: if its buffer can't be flushed at exit, Python ends with status 120.
            os.write(stream.fileno(), line.encode(stream.encoding or "utf-8", "backslashreplace"))
        else:
            stream.write(line)
    except Exception:
        pass  # a closed stderr must not end the training
