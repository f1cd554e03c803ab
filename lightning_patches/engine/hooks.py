"""Import hooks: one finder for Lightning's modules, and a loader for modules with a target.

Each stack frame that we add can make imports slower: if calls cross the end of a chunk of Python's stack, Python
allocates and frees memory at each call. So the finder returns ``None`` for modules without a target, except root
packages, and our loaders have the same number of frames as importlib. If it turns out that a module needs no work, its
original loader is restored.

The loader applies the patches, and not the finder. A loader holds only the module's lock: if two threads wait for each
other's modules, Python detects that and lets one continue. A finder runs while Python holds the lock that every import
of every thread needs. If it waited for another thread, both could block forever.

wrapt's finder is not sufficient. It forgets a hook after the call, so a reloaded module, or a module whose first import
failed, would be unpatched. It has no hook before a module runs. And below wrapt 1.15, it waits for a lock of wrapt. So
this finder watches the imports, and wrapt's post-import hooks patch a module after it has run
(:mod:`lightning_patches.engine.patcher`). The import of wrapt takes 5 ms.

Python may load this module at start-up. wrapt and other modules are imported when a module of Lightning is loaded.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than this module
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional, Protocol, TypeVar

    _Method = TypeVar("_Method", bound=Any)

    class NeedsWork(Protocol):
        def __call__(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
            """True if the module needs work.

            The loader passes the spec and gets an exact answer. The finder passes no spec: then the function must not
            wait for another thread, and returns True if the answer is not known yet.
            """

    class Watcher(Protocol):
        """Called before and after each Lightning module is imported. An exception makes the import fail."""

        def before(self, module: ModuleType) -> None:
            """Called right before the module is executed."""

        def after(self, module: ModuleType) -> None:
            """Called right after each execution of the module."""


ROOT_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric", "lightning_lite")
WORKER_LIBRARIES = {
    "distributed": "cli/dask_worker.py",
    "joblib": "externals/loky/backend/popen_loky_posix.py",
    "loky": "backend/popen_loky_posix.py",
    "submitit": "core/_submit.py",
}
"""Libraries whose workers get the program's functions by pickle and don't run its script, with a file of each."""


class _Finder:
    """Return the spec that Python would find, with our loader around the original loader."""

    get_watcher: Optional[Callable[[], Optional[Watcher]]] = None
    """Called by the loaders. Returns the watcher, see :func:`install`. ``None`` while the finder is not installed."""
    needs_work: NeedsWork
    on_worker_library: Optional[Callable[[str], object]] = None
    """Called when a package is imported that has the name of a library of ``WORKER_LIBRARIES``, with this name."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname in WORKER_LIBRARIES and self.on_worker_library is not None:
            self.on_worker_library(fullname)
        if fullname.partition(".")[0] not in ROOT_PACKAGES or self.get_watcher is None or not self.needs_work(fullname):
            return None
        # Call only the finders after this one. Calling earlier ones would never end with a second copy of this finder.
        is_after_this = False
        for finder in list(sys.meta_path):
            if not is_after_this:
                is_after_this = finder is self
                continue
            find = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(fullname, path, target) if find is not None else None
            if spec is not None:
                # A finder that calls all finders again, such as wrapt's, returns a spec with our loader.
                if spec.loader is not None and getattr(spec.loader, "lightning_patches_finder", None) is not self:
                    loads = _Loader if hasattr(spec.loader, "exec_module") else _OldLoader
                    spec.loader = loads(self, spec.loader)  # type: ignore[assignment]
                return spec
        return None


def _like_importlib(function: _Method) -> _Method:
    """Hide a function's frame in tracebacks of imports, as Python hides those of importlib: by the file name."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return function


@_like_importlib
def _call_with_frames_removed(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy of the function in ``importlib``, with the same frame size, so that the stack is as deep as with it."""
    return function(*args, **kwargs)


_EXECUTES = ("<frozen importlib._bootstrap_external>", "exec_module")
"""File and name of the function that executes modules in Python's loaders."""


class _Loader:
    """Load a module with the original loader, and call the watcher before and after.

    The module's ``__loader__`` and ``__spec__.loader`` are the original loader.
    """

    def __init__(self, finder: _Finder, loader: Any) -> None:
        self.lightning_patches_finder = finder
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._loader.__class__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._loader.__reduce_ex__(protocol)  # a copy of this loader is one of the original loader

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        create = getattr(self._loader, "create_module", None)
        made: Optional[ModuleType] = create(spec) if create is not None else None
        if spec.loader is self and (
            self._watcher() is None or not self.lightning_patches_finder.needs_work(spec.name, spec)
        ):
            spec.loader = self._loader
        return made

    @_like_importlib
    def exec_module(self, module: Any) -> None:
        execute, *what = self._begin(module)
        _call_with_frames_removed(execute, *what)
        self._end(module)

    @_like_importlib
    def _begin(self, module: Any) -> tuple[Any, ...]:
        if getattr(module, "__spec__", None) is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        watcher = self._watcher()
        if watcher is not None:
            watcher.before(module)
        execute = self._loader.exec_module
        code = getattr(getattr(execute, "__func__", None), "__code__", None)
        if code is not None and (code.co_filename, code.co_name) == _EXECUTES:
            code = self._loader.get_code(module.__name__)
            if code is not None:
                return exec, code, module.__dict__  # like the original loader, but with one frame less
        return execute, module

    def _end(self, module: ModuleType) -> None:
        watcher = self._watcher()
        if watcher is not None:
            watcher.after(module)

    def _watcher(self) -> Optional[Watcher]:
        get_watcher = self.lightning_patches_finder.get_watcher
        return get_watcher() if get_watcher is not None else None


class _OldLoader(_Loader):
    """For a loader that has only ``load_module``: ``zipimport``, up to Python 3.9."""

    create_module = exec_module = property()  # Python calls load_module if these attributes are missing

    def load_module(self, fullname: str) -> Any:
        watcher, known = self._watcher(), fullname in sys.modules
        module = self._loader.load_module(fullname)
        try:
            if watcher is not None:
                watcher.before(module)
                watcher.after(module)
        except BaseException:
            if not known:  # like Python after a failed import, so that the next import tries again
                sys.modules.pop(fullname, None)
            raise
        return module


_finder = _Finder()


def _always(name: str, spec: Optional[ModuleSpec] = None) -> bool:
    return True


def install(get_watcher: Callable[[], Optional[Watcher]], needs_work: NeedsWork = _always) -> None:
    """Watch the imports of Lightning's modules from now on.

    Args:
        get_watcher: called before a module that may need work is executed. Returns the watcher, or ``None``. If it
            raises an exception, the import fails with it.
        needs_work: returns True if a module needs work.
    """
    _finder.needs_work = needs_work
    _finder.get_watcher = get_watcher
    if not _is_in_place():
        sys.meta_path.insert(0, _finder)


def remove() -> None:
    """Stop watching imports. Hooks that are still registered with wrapt do nothing."""
    _finder.get_watcher = _finder.on_worker_library = None
    # Replace the list. If it were changed, a thread that iterates over it could miss the finder after ours.
    sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]


def call_for_worker_libraries(on_worker_library: Callable[[], object]) -> None:
    """Call a function when a library of ``WORKER_LIBRARIES`` is imported, or now if one is already imported.

    Args:
        on_worker_library: the function. It must not import or wait, since Python holds its import lock during the call.
    """

    def call(name: str) -> None:
        if is_worker_library(name, sys.path):
            on_worker_library()

    _finder.on_worker_library = call
    for name in WORKER_LIBRARIES:
        if name in sys.modules:
            call(name)


def is_worker_library(name: str, path: Sequence[str]) -> bool:
    """True if the path has this library, and not another package of its name: with its file, and installed metadata.

    The launcher's ``sitecustomize`` has a copy of this function.
    """
    spec = PathFinder.find_spec(name, path)
    folder = os.path.dirname(getattr(spec, "origin", None) or "")
    try:
        beside = os.listdir(os.path.dirname(folder))
    except OSError:
        return False
    is_installed = any(entry.startswith(name + "-") and entry.endswith("-info") for entry in beside)
    return is_installed and os.path.isfile(os.path.join(folder, WORKER_LIBRARIES[name]))


def installed() -> Optional[Callable[[], Optional[Watcher]]]:
    """Return the argument ``get_watcher`` of the last :func:`install`; ``None`` after :func:`remove`."""
    return _finder.get_watcher


def is_watching() -> bool:
    """True if imports are watched. False also if other code has removed the finder from ``sys.meta_path``."""
    return _finder.get_watcher is not None and _is_in_place()


def _is_in_place() -> bool:
    return any(finder is _finder for finder in sys.meta_path)


def is_being_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def wait_for_imports() -> None:
    """Wait until other threads have finished their imports of Lightning's modules.

    A partly executed module may not have its functions yet, or may be about to store an original that ``from x import
    f`` has read.
    """
    import importlib

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ROOT_PACKAGES and is_being_imported(module):
            try:
                importlib.import_module(name)  # returns at once if this thread is importing the module
            except Exception:
                pass  # the other thread raises it
