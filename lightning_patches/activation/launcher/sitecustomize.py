"""Activate the patches when Python starts, then run the ``sitecustomize`` that this one shadows.

Python imports this module if its directory is on PYTHONPATH. ``lightning-patches run`` and the job script of
``autostart export`` put it there. So does a program that imports the package and a library whose workers don't run the
program's script. All Pythons that the program starts inherit PYTHONPATH, also those of other versions and environments.
So this module activates the patches only in the environment of ``run``, in the exported version, or in such workers.
Elsewhere it only runs the next ``sitecustomize``. Therefore the code must be valid in Python 2.7.
"""

import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))
_VERSION = ".".join(map(str, sys.version_info[:2]))
_EXPORTED = os.path.join(_OWN, "python" + _VERSION)
_THIS_PYTHON = _VERSION + " " + os.path.realpath(sys.prefix)
_PARENT = "_LIGHTNING_PATCHES_PARENT"
_WORKER_LIBRARIES = {
    "distributed": "cli/dask_worker.py",
    "joblib": "externals/loky/backend/popen_loky_posix.py",
    "loky": "backend/popen_loky_posix.py",
    "submitit": "core/_submit.py",
}


def _is_for_this_python():
    # type: () -> bool
    """Return True if LIGHTNING_PATCHES is set, and this is the environment of ``run`` or the exported version.

    If LIGHTNING_PATCHES is blank, the package must not be imported here. It would be inactive, and the script's later
    ``import lightning_patches``, which means the default set, would do nothing.
    """
    if not os.environ.get("LIGHTNING_PATCHES", "").replace(",", " ").strip():
        return False
    return os.path.isdir(_EXPORTED) or os.environ.get("_LIGHTNING_PATCHES_FOR") == _THIS_PYTHON


def _is_worker_of_patched():
    # type: () -> bool
    """Return True if a library of ``_WORKER_LIBRARIES`` started this worker for a program that imports the package."""
    words = getattr(sys, "orig_argv", [])  # since Python 3.10
    arguments = getattr(sys, "argv", [])  # "-m" and the arguments; the name of the module is not in it yet
    if os.environ.get(_PARENT) != _THIS_PYTHON or arguments[:1] != ["-m"] or len(words) <= len(arguments):
        return False
    name = words[-len(arguments)].partition(".")[0]
    return name in _WORKER_LIBRARIES and _is_worker_library(name, [""] + sys.path)  # "-m" searches this directory first


def _is_worker_library(name, path):
    # type: (str, list[str]) -> bool
    """Return True if the path has this library, and not another package of its name."""
    from _frozen_importlib_external import PathFinder

    spec = PathFinder.find_spec(name, path)
    folder = os.path.dirname(getattr(spec, "origin", None) or "")
    try:
        beside = os.listdir(os.path.dirname(folder))
    except OSError:
        return False
    is_installed = any(entry.startswith(name + "-") and entry.endswith("-info") for entry in beside)
    return is_installed and os.path.isfile(os.path.join(folder, _WORKER_LIBRARIES[name]))


def _inherit_selection():
    # type: () -> None
    """Select the patches of the program that started this worker."""
    own = os.environ.get("LIGHTNING_PATCHES", "").replace(",", " ").strip()
    os.environ["LIGHTNING_PATCHES"] = os.environ.get(_PARENT + "_TOGGLE", own) or "default"


def _import_package():
    # type: () -> None
    """Import the package, which reads LIGHTNING_PATCHES."""
    if "lightning_patches" in sys.modules:
        return
    # The package's directory may not be on the path. It is appended, so that it shadows nothing, and removed after this
    # import, since an imported package finds its modules without the path. An exported directory stays on the path,
    # because wrapt is in it, which is imported together with Lightning.
    is_exported = os.path.isdir(_EXPORTED)
    root = _EXPORTED if is_exported else os.path.dirname(os.path.dirname(os.path.dirname(_OWN)))
    sys.path.append(root)
    try:
        import lightning_patches  # noqa: F401
    except Exception as error:
        try:
            line = "lightning_patches: not activated: " + type(error).__name__ + ": " + str(error) + "\n"
            # Don't write to sys.stderr: if its buffer can't be flushed at exit, Python ends with status 120.
            os.write(2, line.encode("utf-8"))
        except Exception:
            pass
    finally:
        if not is_exported and sys.path and sys.path[-1] == root:
            del sys.path[-1]


def _is_first():
    # type: () -> bool
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] == _OWN


def _move_to_front():
    # type: () -> None
    """Move this directory back to the front of PYTHONPATH for child processes.

    OpenTelemetry and Elastic APM put a directory in front of it, and their ``sitecustomize`` does not run the next one.
    """
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _OWN in path[1:]:
        os.environ["PYTHONPATH"] = os.pathsep.join([_OWN] + [entry for entry in path if entry != _OWN])


def _move_to_front_before_exec():
    # type: () -> None
    """Move this directory to the front when a command such as ``opentelemetry-instrument`` calls ``os.execv``.

    Scripts (with names that end in .py) keep the original ``os.execv``.
    """
    command = (getattr(sys, "argv", None) or [""])[0]
    if command in ("", "-c", "-m") or command.endswith(".py"):
        return
    execute = os.execv

    def execv(path, arguments):
        # type: (str, list[str]) -> None
        _move_to_front()
        execute(path, arguments)

    os.execv = execv  # type: ignore[assignment]


def _run_next(stays_on_path):
    # type: (bool) -> None
    """Import the next ``sitecustomize`` on the path, a module or a package, in place of this one."""
    here = [entry for entry in sys.path if os.path.abspath(entry) == _OWN]
    index = sys.path.index(here[0]) if here else 0
    sys.path[:] = [entry for entry in sys.path if entry not in here]
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise  # the next sitecustomize exists, and one of its imports failed: Python reports that
    finally:
        sys.modules.setdefault(__name__, own)
        if stays_on_path:
            sys.path[index:index] = here[:1]


if __name__ == "sitecustomize":
    _is_worker = _is_worker_of_patched()
    if _is_worker:
        _inherit_selection()
    _wanted = _is_for_this_python()
    _stays = _wanted and _is_first()
    if _wanted or _is_worker:
        _import_package()
    if _stays:
        _move_to_front_before_exec()
    try:
        _run_next(_stays or _PARENT not in os.environ)
    finally:
        if _stays:
            _move_to_front()
