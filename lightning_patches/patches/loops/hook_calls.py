"""The Trainer does less work around each hook."""

from __future__ import annotations

import logging
import sys
from typing import Any, Callable

from lightning_patches.engine import distributions
from lightning_patches.engine.functions import home_of, is_traced
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALL = "pytorch.trainer.call"
_NAME = "_current_fx_name"


class _Around:
    """The Trainer's work around a hook: a debug message, the hook's name on the module, and the profiler."""

    # `Target.stock` is not used: its lookup at each hook would take longer than the patch saves.

    def __init__(self, original: Callable[..., Any], namespace: str) -> None:
        self._call = distributions.module_name(namespace, _CALL)
        self._profilers = distributions.module_name(namespace, "pytorch.profilers")
        self._says_it = "debug" in original.__code__.co_names  # 2.0 logs it only for callbacks
        self.is_traced = is_traced()
        self._names: dict[str, Any] = {}
        self._setattr: Any = None
        self._idle: Any = None
        self._parts: tuple[Any, ...] = ()

    @property
    def names(self) -> dict[str, Any]:
        """The namespace of Lightning's module.

        It is looked up at the first hook, since nothing may be imported earlier.
        """
        if not self._names:
            found = sys.modules["torch"].nn.Module.__setattr__
            if _is_of("torch.nn.modules.module", found):  # not wrapped by other code
                self._setattr = found
            idle = vars(sys.modules[f"{self._profilers}.base"])["PassThroughProfiler"]
            self._parts = _parts(idle)
            profile = getattr(idle.profile, "__wrapped__", None)
            as_shipped = _is_of("contextlib", idle.profile) and _is_of(f"{self._profilers}.profiler", profile)
            if as_shipped and _is_of(idle.__module__, idle.start, idle.stop):
                self._idle = idle
            self._names = vars(sys.modules[self._call])
        return self._names

    def is_heard(self) -> bool:
        """True if debug messages are enabled.

        Then the original must run, so that the message names the original's line.
        """
        log = self.names["log"]
        return self._says_it and (
            type(log) is not logging.Logger or "debug" in log.__dict__ or log.isEnabledFor(logging.DEBUG)
        )

    def setter(self, module: Any) -> Callable[[Any, str, Any], None]:
        """Return the function that sets an attribute of the module.

        ``torch.nn.Module.__setattr__`` first searches parameters, buffers and submodules, which is slow. It is bypassed
        unless the class overrides it or has a metaclass, which may define its own lookups.
        """
        cls = type(module)
        return object.__setattr__ if type(cls) is type and cls.__setattr__ is self._setattr else setattr

    def idle(self, profiler: Any) -> bool:
        """True if the profiler is Lightning's PassThroughProfiler, which does nothing, without overrides."""
        cls = type(profiler)
        if cls is not self._idle or _parts(cls) != self._parts:
            return False
        own = profiler.__dict__
        return not ("profile" in own or "start" in own or "stop" in own)


def _parts(profiler: Any) -> tuple[Any, ...]:
    return profiler.profile, profiler.start, profiler.stop


def _is_of(module: str, *functions: Any) -> bool:
    return all(home_of(one) == module for one in functions)


def _call_lightning_module_hook(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    around = _Around(original, namespace)

    def _call_lightning_module_hook(
        trainer: Any, hook_name: str, *args: Any, pl_module: Any = None, **kwargs: Any
    ) -> Any:
        if around.is_traced() or around.is_heard():
            return original(trainer, hook_name, *args, pl_module=pl_module, **kwargs)
        module = pl_module or trainer.lightning_module
        if module is None:
            raise TypeError("No `LightningModule` is available to call hooks on.")
        hook = getattr(module, hook_name)
        if not callable(hook):
            return None
        before, set_name = module._current_fx_name, around.setter(module)
        set_name(module, _NAME, hook_name)
        profiler = trainer.profiler
        if around.idle(profiler):
            output = hook(*args, **kwargs)
        else:
            with profiler.profile(f"[LightningModule]{module.__class__.__name__}.{hook_name}"):
                output = hook(*args, **kwargs)
        set_name(module, _NAME, before)
        return output

    return _call_lightning_module_hook


def _call_callback_hooks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    around = _Around(original, namespace)

    def _call_callback_hooks(
        trainer: Any, hook_name: str, *args: Any, monitoring_callbacks: Any = None, **kwargs: Any
    ) -> None:
        if around.is_traced() or around.is_heard():
            which = {} if monitoring_callbacks is None else {"monitoring_callbacks": monitoring_callbacks}
            original(trainer, hook_name, *args, **which, **kwargs)
            return
        module = trainer.lightning_module
        if module:
            before, set_name = module._current_fx_name, around.setter(module)
            set_name(module, _NAME, hook_name)
        callbacks = trainer.callbacks
        if monitoring_callbacks is True or monitoring_callbacks is False:
            monitors = (around.names["EarlyStopping"], around.names["Checkpoint"])
            callbacks = [one for one in callbacks if isinstance(one, monitors) is monitoring_callbacks]
        for callback in callbacks:
            hook = getattr(callback, hook_name)
            if callable(hook):
                profiler, action = trainer.profiler, f"[Callback]{callback.state_key}.{hook_name}"
                if around.idle(profiler):
                    hook(trainer, trainer.lightning_module, *args, **kwargs)
                else:
                    with profiler.profile(action):
                        hook(trainer, trainer.lightning_module, *args, **kwargs)
        if module:
            set_name(module, _NAME, before)

    return _call_callback_hooks


def _call_strategy_hook(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    around = _Around(original, namespace)

    def _call_strategy_hook(trainer: Any, hook_name: str, *args: Any, **kwargs: Any) -> Any:
        if around.is_traced() or around.is_heard():
            return original(trainer, hook_name, *args, **kwargs)
        module = trainer.lightning_module
        before, set_name = module._current_fx_name, around.setter(module)
        set_name(module, _NAME, hook_name)
        hook = getattr(trainer.strategy, hook_name)
        if not callable(hook):
            return None
        profiler, action = trainer.profiler, f"[Strategy]{trainer.strategy.__class__.__name__}.{hook_name}"
        if around.idle(profiler):
            output = hook(*args, **kwargs)
        else:
            with profiler.profile(action):
                output = hook(*args, **kwargs)
        set_name(module, _NAME, before)
        return output

    return _call_strategy_hook


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CALL}:_call_lightning_module_hook", _call_lightning_module_hook),
        Target(f"{_CALL}:_call_callback_hooks", _call_callback_hooks),
        Target(f"{_CALL}:_call_strategy_hook", _call_strategy_hook),
    ),
    upstream=Upstream(issues=(20388,)),
    impact=Impact(
        "The Trainer sets the name of the current hook on the model through torch's slow attribute access, 44 "
        "times per step, and enters a profiler context that does nothing, 16 times. Together this is a third "
        "of the Trainer's overhead per step of a small model.",
        ("training with the Trainer is slower than the same loop in plain PyTorch", "Trainer overhead small model"),
    ),
    note="The name is written directly into the module's attributes, and the profiler that does nothing is "
    "skipped. Modules that override __setattr__, a wrapped torch.nn.Module.__setattr__, and all profilers "
    "except the Trainer's default still get each call. Debug messages of Lightning are printed if they "
    "are enabled. torch.compile traces Lightning's original function.",
)
