"""Gradients are synchronized for submodules of a Fabric module that are called directly."""

import functools
import inspect
from typing import Any, Callable, Iterator

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_MODULE = "fabric.wrappers:_FabricModule"

_SYNC = "_lightning_patches_gradient_sync"


_WHOLE = frozenset(("_forward_module", "_original_module"))


_ALL_PARTS = frozenset(("values", "items"))
"""Methods of a container that return its submodules."""


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        parts = self.__dict__["_modules"]  # a program may override __getattr__
        if not parts.keys() >= _WHOLE:
            return  # a custom strategy may return an object that is not a module
        from lightning_patches.patches.fabric import _ddp_gradients  # large, so imported on first use

        sync = _ddp_gradients.watch(parts["_forward_module"])
        if sync is not None:
            self.__dict__[_SYNC] = sync
        elif _ddp_gradients.cannot_watch(parts["_forward_module"]):
            return  # with items, the program would train without synchronization and without stock's error
        if _is_container(parts["_original_module"]):
            object.__setattr__(self, "__class__", _with_items(self.__class__))

    return __init__


def _is_container(module: Any) -> bool:
    """True for a ModuleDict, a ModuleList and similar containers without a forward.

    The wrapper of a module with a forward gets no ``__getitem__``, since it would then look iterable.
    """
    import torch

    from lightning_patches.patches.fabric import _ddp_gradients

    kind = type(_ddp_gradients.uncompiled(module))
    return hasattr(kind, "__getitem__") and getattr(kind, "forward", None) is torch.nn.Module.forward


@functools.lru_cache(maxsize=None)
def _with_items(wrapper: Any) -> Any:
    """Return a subclass of the wrapper's class that gives access to the items of the wrapped module.

    A copy of the object has the wrapper's class.
    """

    class WithItems(wrapper):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            return _reached(self, self._original_module[key])

        def __contains__(self, key: Any) -> bool:
            return key in self._original_module

        def __iter__(self) -> Iterator[Any]:
            # With __getitem__ alone, Python would iterate over integer keys: KeyError 0 for a ModuleDict.
            return (_reached(self, part) for part in self._original_module)

        def __reduce_ex__(self, protocol: Any) -> Any:
            _, _, *state = super().__reduce_ex__(2)
            return (object.__new__, (wrapper,), *state)

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(WithItems, name, getattr(wrapper, name))
    return WithItems


def _reached(module: Any, part: Any) -> Any:
    """Record that ``part`` was accessed through the wrapper, and return it."""
    sync = module.__dict__.get(_SYNC)
    if sync is not None:
        sync.reach(part)
    return part


def _getattr(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        found = original(self, item)
        if item in _WHOLE:
            return found
        sync = self.__dict__.get(_SYNC)
        if sync is None:
            return found
        if not inspect.ismethod(found):
            sync.reach(found)
        elif found.__self__ is self._original_module:
            if item in _ALL_PARTS and _is_container(self._original_module):
                sync.reach(self._original_module)
            elif not sync.is_reached(self._original_module):
                return _reaching(found, sync, self._original_module)
        return found

    return __getattr__


def _reaching(method: Callable[..., Any], sync: Any, root: Any) -> Callable[..., Any]:
    """Wrap a method of the wrapped module so that ``sync`` records the modules that it calls."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        def on_call(*_: Any) -> None:
            sync.reach(root)

        handles = [module.register_forward_pre_hook(on_call) for module in root.modules()]
        try:
            return method(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()

    return call


def _forward(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(self, *args, **kwargs)
        sync = self.__dict__.get(_SYNC)
        if sync is not None:
            sync.after_forward()
        return output

    return forward


def _step(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        from lightning_patches.patches.fabric import _ddp_gradients

        _ddp_gradients.average_before(self)
        return original(self, *args, **kwargs)

    return step


def _clip_gradients(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def clip_gradients(self: Any, module: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        from lightning_patches.patches.fabric import _ddp_gradients

        _ddp_gradients.average_before(optimizer)
        return original(self, module, optimizer, *args, **kwargs)

    return clip_gradients


def _method_guard(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    plain = stock_of(original).__globals__.get("Precision")

    def _wrap_method_with_module_call_tracker(self: Any, method: Callable[..., Any], name: str) -> Any:
        # The guard refuses a method that calls submodules, since that would bypass DDP. With this patch, gradients are
        # synchronized anyway.
        return method if _methods_are_safe(self, plain) else original(self, method, name)

    return _wrap_method_with_module_call_tracker


def _method_warning(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    plain = stock_of(original).__globals__.get("Precision")

    def _validate_method_access(self: Any, name: str, attribute: Any) -> None:
        if not _methods_are_safe(self, plain):
            original(self, name, attribute)

    return _validate_method_access


def _methods_are_safe(module: Any, plain: Any) -> bool:
    """True if a method may bypass the wrapper: gradients are synchronized, and no autocast is needed."""
    if module.__dict__.get(_SYNC) is None:
        return False
    strategy = module.__dict__.get("_strategy")
    precision = module._precision if strategy is None else strategy.precision
    return type(precision) is plain  # other precision classes may need autocast


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "gradients are averaged over the ranks"),
    affected=(">=1.9.0,<=2.6.6",),
    targets=(
        Target(f"{_MODULE}.__init__", _init),
        Target(f"{_MODULE}.forward", _forward),
        Target(f"{_MODULE}.__getattr__", _getattr),
        Target("fabric.wrappers:_FabricOptimizer.step", _step),
        Target("fabric.fabric:Fabric.clip_gradients", _clip_gradients, since="2.0.0"),
        Target(f"{_MODULE}._validate_method_access", _method_warning, since="2.0.2", before="2.1.1"),
        Target(f"{_MODULE}._wrap_method_with_module_call_tracker", _method_guard, since="2.1.1"),
    ),
    upstream=Upstream(issues=(20293,)),
    impact=Impact(
        "If a model in a ModuleDict (teacher and student, a GAN) is set up as a whole and then called by its "
        "parts, it trains without gradient synchronization: the ranks train different models, without a "
        "warning.",
        (
            "gradients differ between ranks when a submodule is called after fabric.setup_module",
            "'_FabricModule' object is not subscriptable",
            "from outside the model",
        ),
        error="TypeError: '_FabricModule' object is not subscriptable",
        would_tell="with the callback lightning_patches.GradientSyncCheck which ranks differ. It is this "
        "bug if the script calls a part of the module that it passed to `setup_module`, and not the whole",
    ),
    note="DDP only. The patch handles parts that the program accesses as attributes or items of the result of "
    "fabric.setup, in backward passes that reach no other parameters. Calls through `.module`, or through "
    "a reference from before fabric.setup, still bypass DDP. Gradients are averaged after the backward, not "
    "during it. If the program trained through DDP before, or some ranks do not come within 10 seconds, the first ones "
    "are averaged before `fabric.clip_gradients` or the optimizer's step. So one rank alone may run a backward and "
    "discard its gradients in a program that trains through DDP. In a program that trains by parts, all ranks "
    "must run the backward; a rank that waits 10 seconds for others prints a warning. If only some ranks run it, call "
    "the part through `.module`, use `fabric.no_backward_sync`, or call `torch.autograd.grad`. Gradients that only "
    "some ranks have are not averaged, and a warning names the ranks and parts. With mixed precision, a part that is "
    "called directly runs without "
    "autocast: put the call under `fabric.autocast()`. With torch older than 2.1 the patch changes nothing. "
    "Programs that bypass DDP on purpose are unchanged, unless they also access all trained parameters "
    "through the wrapper. Without the patch, set up each trained part separately, as the maintainers "
    "recommend.",
    after=("fabric-compiled-module", "fabric-containers", "fabric-mark-forward-method", "fabric-method-guard-hooks"),
)
