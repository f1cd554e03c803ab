"""Python imports this at its start under ``lightning-patches run``, or from what ``autostart export`` wrote: arms the
patches, then runs what it shadows.

Every Python that the launched program starts passes through here, whatever its version and environment. Only the one
that `run` belongs to is touched, or those of the version that was exported; in all others this gives way to the
``sitecustomize`` that would have been imported without it, and that is all. The code is valid in Python 2.7, too.
"""

import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))


def _arm():
    # type: () -> None
    # What LIGHTNING_PATCHES asks for, the package sees for itself. Where it asks for nothing at all, the package must
    # not be loaded asleep: an import in the script, which applies the default set then, would find it loaded already.
    if not os.environ.get("LIGHTNING_PATCHES", "").replace(",", " ").strip():
        return
    if "lightning_patches" in sys.modules:
        return
    version = ".".join(map(str, sys.version_info[:2]))
    exported = os.path.join(_OWN, "python" + version)
    is_exported = os.path.isdir(exported)
    if not is_exported and os.environ.get("_LIGHTNING_PATCHES_FOR") != version + " " + os.path.realpath(sys.prefix):
        return
    # The package may be run from a directory that is on nobody's path. Last on the path it shadows nothing, and it is
    # there for this one import only: a package finds its own modules without it. What was exported stays there, for
    # wrapt is needed when Lightning is imported.
    root = exported if is_exported else os.path.dirname(os.path.dirname(os.path.dirname(_OWN)))
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


def _chain():
    # type: () -> None
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
        sys.path[index:index] = here[:1]


if __name__ == "sitecustomize":
    _arm()
    _chain()
