"""Activate the patches when Python starts, then run the ``sitecustomize`` that this one shadows.

Python imports this under ``lightning-patches run``, from what ``autostart export`` wrote, or below a program that
imports the package and a library whose workers don't run its script. Every Python that the program starts does so,
whatever its version and environment. This activates only in the environment of `run`, in the version that was exported,
or in such workers. In all others it only runs the next ``sitecustomize``. The code is valid in Python 2.7, too.
"""

import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))
_VERSION = ".".join(map(str, sys.version_info[:2]))
_EXPORTED = os.path.join(_OWN, "python" + _VERSION)
_THIS_PYTHON = _VERSION + " " + os.path.realpath(sys.prefix)
_PARENT = "_LIGHTNING_PATCHES_PARENT"
_WORKER_LIBRARIES = ("distributed", "joblib", "loky", "submitit")


def _is_for_this_python():
    # type: () -> bool
    """Return True if patches are wanted here: set by LIGHTNING_PATCHES, in the environment or version that was chosen.

    If LIGHTNING_PATCHES is blank, the package must not be loaded at all: loaded but inactive, it would turn the
    script's own import, which means the default set, into a no-op.
    """
    if not os.environ.get("LIGHTNING_PATCHES", "").replace(",", " ").strip():
        return False
    return os.path.isdir(_EXPORTED) or os.environ.get("_LIGHTNING_PATCHES_FOR") == _THIS_PYTHON


def _is_worker_of_patched():
    # type: () -> bool
    """Return True in a worker, of a library of ``_WORKER_LIBRARIES``, of a program that imports the package."""
    words = getattr(sys, "orig_argv", [])  # Python 3.10
    arguments = getattr(sys, "argv", [])  # without the name of the module, at this time
    if os.environ.get(_PARENT) != _THIS_PYTHON or arguments[:1] != ["-m"] or len(words) <= len(arguments):
        return False
    return words[-len(arguments)].partition(".")[0] in _WORKER_LIBRARIES


def _take_over_selection():
    # type: () -> None
    """Select the patches that the program has selected by ``activate``, by LIGHTNING_PATCHES, or by its import."""
    own = os.environ.get("LIGHTNING_PATCHES", "").replace(",", " ").strip()
    os.environ["LIGHTNING_PATCHES"] = os.environ.get(_PARENT + "_TOGGLE", own) or "default"


def _arm():
    # type: () -> None
    """Import the package, which reads LIGHTNING_PATCHES."""
    if "lightning_patches" in sys.modules:
        return
    # The package may be in a directory that is not on the path. Last on the path, the directory shadows nothing. It
    # stays for this import only, since a package finds its modules without it. An exported directory stays on the path:
    # wrapt is in it, and is imported together with Lightning.
    is_exported = os.path.isdir(_EXPORTED)
    root = _EXPORTED if is_exported else os.path.dirname(os.path.dirname(os.path.dirname(_OWN)))
    sys.path.append(root)
    try:
        import lightning_patches  # noqa: F401
    except Exception as error:
        try:
            line = "lightning_patches: not activated: " + type(error).__name__ + ": " + str(error) + "\n"
            os.write(2, line.encode("utf-8"))  # past the buffer: what stays in it ends the program with status 120
        except Exception:
            pass
    finally:
        if not is_exported and sys.path and sys.path[-1] == root:
            del sys.path[-1]


def _is_first():
    # type: () -> bool
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] == _OWN


def _put_first():
    # type: () -> None
    """Move this directory back to the front of PYTHONPATH, for the processes that this one starts.

    OpenTelemetry and Elastic APM put a directory in front whose ``sitecustomize`` does not run the next one.
    """
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _OWN in path[1:]:
        os.environ["PYTHONPATH"] = os.pathsep.join([_OWN] + [entry for entry in path if entry != _OWN])


def _put_first_before_exec():
    # type: () -> None
    """In an installed command such as ``opentelemetry-instrument``, act before it replaces itself by the program.

    Scripts, whose names end in .py, keep their ``os.execv``.
    """
    command = (getattr(sys, "argv", None) or [""])[0]
    if command in ("", "-c", "-m") or command.endswith(".py"):
        return
    execute = os.execv

    def execv(path, arguments):
        # type: (str, list[str]) -> None
        _put_first()
        execute(path, arguments)

    os.execv = execv  # type: ignore[assignment]


def _chain(stays_on_path):
    # type: (bool) -> None
    """Import the ``sitecustomize`` that comes next on the path, module or package, in place of this one."""
    here = [entry for entry in sys.path if os.path.abspath(entry) == _OWN]
    index = sys.path.index(here[0]) if here else 0
    sys.path[:] = [entry for entry in sys.path if entry not in here]
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise  # the other one is there, and lacks something: Python reports it as it would have without us
    finally:
        sys.modules.setdefault(__name__, own)
        if stays_on_path:
            sys.path[index:index] = here[:1]


if __name__ == "sitecustomize":
    _is_worker = _is_worker_of_patched()
    if _is_worker:
        _take_over_selection()
    _wanted = _is_for_this_python()
    _stays = _wanted and _is_first()
    if _wanted or _is_worker:
        _arm()
    if _stays:
        _put_first_before_exec()
    try:
        _chain(_stays or _PARENT not in os.environ)
    finally:
        if _stays:
            _put_first()
