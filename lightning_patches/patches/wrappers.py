"""``fabric/wrappers.py``: what ``fabric.setup`` returns for a module and an optimizer."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import Any, Callable, Union

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "fabric.wrappers:_FabricModule"


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        # The original tests the truth value of the user's module, which for a compiled one asks for its length. It does
        # not test the other module, which it uses where it was given none.
        given = args[2] if len(args) > 2 else kwargs.get("original_module")
        if not _is_compiled(given):
            original(self, *args, **kwargs)
            return
        kwargs.pop("original_module", None)
        original(self, *args[:2], **kwargs)
        self._modules["_original_module"] = given  # past __setattr__, which from 2.1 on writes to both modules

    return __init__


def _module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def module(self: Any) -> Any:
        given = self._original_module
        return given if _is_compiled(given) else original(self)

    return module


def _is_compiled(module: Any) -> bool:
    import torch

    return isinstance(module, torch.nn.Module) and "_orig_mod" in module._modules


_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))
_MARKED = "_lightning_patches_forward_methods"


def _through_forward(module: Any, name: str) -> Callable[..., Any]:
    """A method of the wrapped module as a call of the wrapper, and so of what the strategy made of the module."""

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = module._original_module
        own_forward = vars(inner).get("forward")

        def restore() -> None:
            if own_forward is None:
                vars(inner).pop("forward", None)
            else:
                inner.forward = own_forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            restore()  # first, because the method may call the real one
            return getattr(inner, name)(*args, **kwargs)

        inner.forward = forward
        try:
            return module.forward(*args, **kwargs)
        finally:
            restore()

    return call


def _is_wrapped(module: Any) -> bool:
    return module._forward_module is not module._original_module


def _getattr_steps(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        if item in _STEPS and _is_wrapped(self) and hasattr(self._original_module, item):
            return _through_forward(self, item)
        return original(self, item)

    return __getattr__


def _getattr_marked(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        marked = self.__dict__.get(_MARKED)
        if marked is not None and item in marked and _is_wrapped(self):
            return _through_forward(self, item)
        return original(self, item)

    return __getattr__


def _mark_forward_method(original: None, namespace: str) -> Callable[..., None]:
    def mark_forward_method(self: Any, method: Union[MethodType, str]) -> None:
        """Have a method of the wrapped module go through the strategy when it is called on this one.

        Args:
            method: the method, or its name.

        Raises:
            TypeError: it is neither.
            ValueError: it is ``forward``, which goes there by itself.
            AttributeError: the wrapped module has no such method.
        """
        if not isinstance(method, (MethodType, str)):
            raise TypeError(f"Expected a method or its name, got {type(method).__name__}.")
        name = method if isinstance(method, str) else method.__name__
        if name == "forward":
            raise ValueError("The forward method goes through the strategy already: there is nothing to mark.")
        if not isinstance(getattr(self._original_module, name, None), MethodType):
            raise AttributeError(f"{type(self._original_module).__name__} has no method '{name}' that could be marked.")
        self.__dict__.setdefault(_MARKED, set()).add(name)

    return mark_forward_method


def _guard(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _wrap_method_with_module_call_tracker(self: Any, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            tracked = original(self, method, name)  # anew each time: it never forgets that it has refused
            try:
                return tracked(*args, **kwargs)
            except BaseException:
                _remove(inspect.getclosurevars(tracked).nonlocals.get("hook"), self._original_module)
                raise

        return guarded

    return _wrap_method_with_module_call_tracker


def _remove(hook: Any, root: Any) -> None:
    """Take a forward hook off every module below ``root``."""
    if hook is None:
        return
    for module in root.modules():
        for key in [key for key, value in module._forward_hooks.items() if value is hook]:
            del module._forward_hooks[key]


def _setattr(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        own = vars(self)
        if not own.get("_fabric_module_initialized", False) or name in own or name not in dir(self):
            original(self, name, value)
            return
        # What the wrapper's class has, too: set on the wrapped module alone, it would not be what is called.
        if hasattr(self._original_module, name):
            setattr(self._original_module, name, value)
        wrapper = upstream_module(namespace, "fabric.wrappers")._FabricModule
        super(wrapper, self).__setattr__(name, value)

    return __setattr__


_OWN = {"load_state_dict", "state_dict", "step", "zero_grad", "__del__"}
"""What the wrapper has of its own, even where the optimizer carries one on the instance (a scheduler's ``step``)."""


def _load_state_dict(original: None, namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        # The wrapper shows a copy of the optimizer's attributes, but the optimizer is what steps. Loading makes new
        # lists and dicts, which have to be seen on both.
        self.optimizer.load_state_dict(state_dict)
        vars(self).update({name: value for name, value in vars(self.optimizer).items() if name not in _OWN})

    return load_state_dict


PATCHES = (
    Patch(
        name="fabric-compiled-module",
        title="fabric.setup accepts a compiled module",
        group="compat",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_MODULE}.__init__", _init, before="2.6.4"),
            Target(f"{_MODULE}.module", _module),
        ),
        calls=("fabric.wrappers:_FabricModule.__getattr__()",),
        upstream=Upstream(issues=(17250,)),
        impact=Impact(
            "With newer versions of torch, fabric.setup(torch.compile(model)) ends the program: in 2.0 and 2.1 always, "
            "up to 2.6.1 where Fabric is asked to leave the compilation alone (_reapply_compile=False), and in the "
            "releases after it when `.module` of the result is read.",
            ("does not support len()",),
        ),
        equivalent_to="the same module, not compiled",
        note="The cause lies in torch: since its PR 159208 the truth value of a compiled module is that of its length, "
        "or an error if it has none (torch issue 196253). The Lightning issue is about compiling in Fabric.",
        relied_on="A custom strategy that turns a module into something that is not a torch.nn.Module can go on "
        "doing so; a module that is not compiled is set up as before.",
        relied_on_tests=(
            "tests/patches/test_fabric_compiled_module.py::test_what_a_strategy_makes_of_a_module_need_not_be_one",
        ),
    ),
    Patch(
        name="fabric-step-methods",
        title="training_step() of a model that Fabric has set up goes through the strategy",
        group="correctness",
        affected=(">=2.0.0,<2.0.2",),
        targets=(Target(f"{_MODULE}.__getattr__", _getattr_steps),),
        calls=("fabric.wrappers:_FabricModule.forward()",),
        upstream=Upstream(
            pull_requests=(17424,),
            commit="0ee71d6a7a",
            fixed_in="2.0.2",
            tests=("tests/tests_fabric/test_wrappers.py::test_step_method_redirection",),
        ),
        impact=Impact(
            "A LightningModule whose training_step() is called after fabric.setup() trains past DDP or FSDP and their "
            "precision plugin: every rank goes its own way, and nothing says so.",
            ("gradients differ between ranks when training_step is called with Fabric",),
        ),
    ),
    Patch(
        name="fabric-mark-forward-method",
        title="Any method of a Fabric module can be sent through the strategy: mark_forward_method()",
        group="compat",
        affected=(">=2.0.0,<2.3.0",),
        targets=(
            Target(f"{_MODULE}.__getattr__", _getattr_marked),
            Target(f"{_MODULE}.mark_forward_method", _mark_forward_method, adds=True),
        ),
        calls=("fabric.wrappers:_FabricModule.forward()",),
        upstream=Upstream(
            pull_requests=(19690,),
            commit="e0307277a0",
            fixed_in="2.3.0",
            tests=("tests/tests_fabric/test_wrappers.py::test_fabric_module_mark_forward_method",),
        ),
        impact=Impact(
            "A method other than forward() that is called after fabric.setup() bypasses DDP or FSDP (up to 2.1.0) or "
            "is refused (from 2.1.1 on), and there is no way to call it.",
            (
                "from outside the model. This will bypass the wrapper from the strategy",
                "object has no attribute 'mark_forward_method'",
            ),
        ),
        note="Nothing changes for methods that are not marked, and the refusal does not say how to mark one.",
    ),
    Patch(
        name="fabric-method-guard-hooks",
        title="A method call that Fabric refuses leaves no hooks on the model",
        group="crash",
        affected=(">=2.1.1,<=2.6.6",),
        targets=(Target(f"{_MODULE}._wrap_method_with_module_call_tracker", _guard),),
        calls=("fabric.wrappers:_FabricModule.__getattr__()",),
        upstream=Upstream(pull_requests=(21945,)),
        impact=Impact(
            "After a method call on a model that Fabric has set up was refused, or failed by itself, each module "
            "of the model keeps a forward hook, one more with every such call: the model can no longer be pickled, "
            "and gets slower. A method that was kept in a variable is refused ever after.",
            (
                "Can't get local object '_FabricModule._wrap_method_with_module_call_tracker.<locals>.hook'",
                "Can't pickle local object '_FabricModule._wrap_method_with_module_call_tracker.<locals>.hook'",
            ),
        ),
        equivalent_to="the same program without the call that was refused",
        note="The official fix is proposed (pull request 21945), but in no release.",
        relied_on="A program whose method calls are accepted is as before, and a call that was refused, or failed, "
        "raises the same error. A method that was kept in a variable can be called again after a refusal.",
        relied_on_tests=(
            "tests/patches/test_fabric_method_guard_hooks.py::test_without_such_a_call",
            "tests/patches/test_fabric_method_guard_hooks.py::test_nothing_stays",
        ),
    ),
    Patch(
        name="fabric-replaced-methods",
        title="A method that is replaced on a model set up with Fabric is the one that is called",
        group="correctness",
        affected=(">=2.1.0,<2.2.2",),
        targets=(Target(f"{_MODULE}.__setattr__", _setattr),),
        calls=("fabric.wrappers:_FabricModule.__getattr__()",),
        upstream=Upstream(
            pull_requests=(19705,),
            fixed_in="2.2.2",
            tests=("tests/tests_fabric/test_wrappers.py::test_fabric_module_setattr",),
        ),
        impact=Impact(
            "A method that Fabric's wrapper has as well, such as forward() or state_dict(), cannot be replaced on what "
            "fabric.setup() returned: the model's own is replaced instead, and the wrapper's is still called.",
            ("monkeypatching forward of a Fabric module has no effect",),
        ),
    ),
    Patch(
        name="fabric-optimizer-load-state",
        title="Loading an optimizer's state through Fabric reaches the optimizer that steps",
        group="correctness",
        affected=(">=2.0.0,<2.0.9",),
        targets=(Target("fabric.wrappers:_FabricOptimizer.load_state_dict", _load_state_dict, adds=True),),
        calls=("fabric.wrappers:_FabricOptimizer.optimizer()",),
        upstream=Upstream(
            pull_requests=(18488,),
            commit="cf437ed7c6",
            fixed_in="2.0.9",
            tests=("tests/tests_fabric/test_wrappers.py::test_fabric_optimizer_load_state_dict",),
        ),
        impact=Impact(
            "Training that is resumed with fabric.load() starts with a fresh optimizer: no momentum, and the "
            "learning rate of the script instead of the checkpoint's. Nothing says so, and the wrapper shows what "
            "was loaded.",
            (
                "fabric.load does not restore the optimizer",
                "loss jumps after resuming with Fabric",
                "learning rate is reset after fabric.load",
            ),
        ),
    ),
)
