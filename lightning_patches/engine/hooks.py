"""Import hooks: one finder for Lightning's modules, and a loader for modules with a target.

Additional stack frames can make imports slower: when calls cross the end of a chunk of Python's stack, Python allocates
and frees memory at each call. So the finder does not answer for modules without a target. The loader of the package
whose import activates the patches restores the real loader. The other loaders replace frames of importlib.

A module's loader does the work. It holds only the module's lock: if two threads wait for each other's modules, Python
detects that and lets one continue. A finder runs while Python holds the lock that every import of every thread needs.
If it waited for another thread, both could block forever. So the finder only finds.

wrapt's finder is not sufficient. It forgets a hook after the call, so a reloaded module, or one whose first import
failed, would be unpatched. It has no hook before a module runs. And below wrapt 1.15 it waits for its own lock. So this
finder watches the imports, and wrapt's post-import hooks patch a module after it has run
(:mod:`lightning_patches.engine.patcher`). The import of wrapt takes 5 ms.

Python may load this module at start-up. wrapt and other modules are imported when a module of Lightning is loaded.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than this module
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional, Protocol, TypeVar

    _Method = TypeVar("_Method", bound=Any)

    class Concerns(Protocol):
        def __call__(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
            """True if the module needs work.

            The loader passes the spec and gets an exact answer. The finder passes none: the answer must not wait, and
            is True if it is not known yet.
            """

    class Watcher(Protocol):
        """Called before and after each Lightning module is imported. An exception makes the import fail."""

        def before(self, module: ModuleType) -> None:
            """The module is about to be executed."""

        def after(self, module: ModuleType) -> None:
            """It has been executed: for the first time, or once more."""


ROOT_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric", "lightning_lite")
WORKER_LIBRARIES = ("distributed", "joblib", "loky", "submitit")
"""Libraries whose workers get the program's functions by value, and so don't run its script."""


class _Finder:
    """Finds what Python would have found, and puts our loader in front of the real one."""

    ready: Optional[Callable[[], Optional[Watcher]]] = None
    """Returns the watcher of a module; the loader calls it. ``None`` while the finder is not installed."""
    concerns: Concerns
    reach_workers: Optional[Callable[[], object]] = None
    """Called when a library of ``WORKER_LIBRARIES`` is imported."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname in WORKER_LIBRARIES and self.reach_workers is not None:
            self.reach_workers()
        if fullname.partition(".")[0] not in ROOT_PACKAGES or self.ready is None or not self.concerns(fullname):
            return None
        # Those before us had their turn. Asking them again would go round in circles with a second copy of us.
        turn = False
        for finder in list(sys.meta_path):
            if not turn:
                turn = finder is self
                continue
            find = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(fullname, path, target) if find is not None else None
            if spec is not None:
                # A finder that asks all of us again, as wrapt's does, has brought our loader already.
                if spec.loader is not None and getattr(spec.loader, "lightning_patches_finder", None) is not self:
                    loads = _Loader if hasattr(spec.loader, "exec_module") else _OldLoader
                    spec.loader = loads(self, spec.loader)  # type: ignore[assignment]
                return spec
        return None


def _like_importlib(function: _Method) -> _Method:
    """Python leaves the frames of its import machinery out of the traceback of a module: it knows their file's name."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return function


@_like_importlib
def _call_with_frames_removed(function: Any, *args: Any, **kwargs: Any) -> Any:
    """As in ``importlib``, name and size included, so that the stack is as deep as without us."""
    return function(*args, **kwargs)


_EXECUTES = ("<frozen importlib._bootstrap_external>", "exec_module")
"""File and name of the function that executes modules in Python's loaders."""


class _Loader:
    """Load a module with the real loader, which the module sees, and call the watcher before and after."""

    def __init__(self, finder: _Finder, loader: Any) -> None:
        self.lightning_patches_finder = finder
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._loader.__class__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._loader.__reduce_ex__(protocol)  # a copy is one of the real loader

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        create = getattr(self._loader, "create_module", None)
        made: Optional[ModuleType] = create(spec) if create is not None else None
        if spec.loader is self and (
            self._watcher() is None or not self.lightning_patches_finder.concerns(spec.name, spec)
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
                return exec, code, module.__dict__  # the same as the real loader, without its frame
        return execute, module

    def _end(self, module: ModuleType) -> None:
        watcher = self._watcher()
        if watcher is not None:
            watcher.after(module)

    def _watcher(self) -> Optional[Watcher]:
        ready = self.lightning_patches_finder.ready
        return ready() if ready is not None else None


class _OldLoader(_Loader):
    """For a loader that makes and executes a module in one step: ``zipimport``, up to Python 3.9."""

    create_module = exec_module = property()  # Python asks which of the two kinds it is

    def load_module(self, fullname: str) -> Any:
        watcher, known = self._watcher(), fullname in sys.modules
        module = self._loader.load_module(fullname)
        try:
            if watcher is not None:
                watcher.before(module)
                watcher.after(module)
        except BaseException:
            if not known:  # as Python does where it executes a module itself: the next import tries again
                sys.modules.pop(fullname, None)
            raise
        return module


_finder = _Finder()


def _all(name: str, spec: Optional[ModuleSpec] = None) -> bool:
    return True


def install(ready: Callable[[], Optional[Watcher]], concerns: Concerns = _all) -> None:
    """Watch Lightning's modules from now on.

    Args:
        ready: called before each module that may need work is executed. Returns the watcher, or ``None``. The import
            raises its exceptions.
        concerns: returns True if a module needs work.
    """
    _finder.concerns = concerns
    _finder.ready = ready
    if not _is_in_place():
        sys.meta_path.insert(0, _finder)


def remove() -> None:
    """Watch no longer. Hooks that wrapt still has do nothing."""
    _finder.ready = _finder.reach_workers = None
    # Not out of the list itself: a thread that is going through it would leave out the finder after ours.
    sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]


def call_for_worker_libraries(reach_workers: Callable[[], object]) -> None:
    """Call ``reach_workers`` when a library of ``WORKER_LIBRARIES`` is imported, or now if one is.

    The finder calls it while Python holds its import lock: it must not import or wait.
    """
    _finder.reach_workers = reach_workers
    if any(name in sys.modules for name in WORKER_LIBRARIES):
        reach_workers()


def installed() -> Optional[Callable[[], Optional[Watcher]]]:
    """Return the ``ready`` of the last :func:`install`; ``None`` after :func:`remove`."""
    return _finder.ready


def in_force() -> bool:
    """True if future imports are watched. Other code may have removed the finder from ``sys.meta_path``."""
    return _finder.ready is not None and _is_in_place()


def _is_in_place() -> bool:
    return any(finder is _finder for finder in sys.meta_path)


def is_being_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def wait_for_imports() -> None:
    """Let other threads finish what they import of Lightning: a half-executed module has no functions to swap, and its
    ``from x import f`` may be between the reading of the original and the storing of it."""
    import importlib

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ROOT_PACKAGES and is_being_imported(module):
            try:
                importlib.import_module(name)  # returns at once if it is this very thread that imports the module
            except Exception:
                pass  # the other thread's to tell
