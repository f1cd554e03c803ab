"""Warn at the start of fit about hooks of Lightning 1.x that 2.x never calls."""

from __future__ import annotations

import dis
import re
import sys
from types import CodeType, FunctionType
from typing import Any, Callable, Iterable, Optional

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, warn, warning

_OF_MODULES = frozenset(
    (
        "training_step_end",
        "validation_step_end",
        "test_step_end",
        "on_epoch_start",
        "on_epoch_end",
        "on_pretrain_routine_start",
        "on_pretrain_routine_end",
        "on_post_move_to_device",
        "on_hpc_save",
        "on_hpc_load",
        "on_train_dataloader",
        "on_val_dataloader",
        "get_progress_bar_dict",
        "tbptt_split_batch",
    )
)
_OF_CALLBACKS = frozenset(
    (
        "on_epoch_start",
        "on_epoch_end",
        "on_batch_start",
        "on_batch_end",
        "on_init_start",
        "on_init_end",
        "on_pretrain_routine_start",
        "on_pretrain_routine_end",
        "on_keyboard_interrupt",
        "on_configure_sharded_model",
        "on_before_accelerator_backend_setup",
    )
)
_LIGHTNINGS = ("lightning", "pytorch_lightning", "lightning_fabric", "torch", "builtins")
_NOTHING = frozenset(("RESUME", "NOP", "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_BORROW", "RETURN_CONST", "RETURN_VALUE"))
"""Opcodes of a method that does nothing, or only returns its argument."""


def _verify_configuration(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, after=_after)


def _after(_: None, __: None, trainer: Any, model: Any) -> None:
    found = _never_called(trainer, model)
    if found:
        warn(
            f"removed hooks {sorted(found)}",
            "Lightning 2.x never calls "
            + "; ".join(f"{name} (instead: {instead})" for name, instead in found.items())
            + ". Lightning 2.0 removed these hooks, so their code does not run.",
            stacklevel=5,
        )


def _never_called(trainer: Any, module: Any) -> dict[str, str]:
    """Return the hooks that are never called, with replacements: ``{"Net.on_epoch_end": "..."}``."""
    from lightning_patches.patches.removed import find

    model = type(module)
    looked_at = {model: _OF_MODULES, **{type(callback): _OF_CALLBACKS for callback in trainer.callbacks}}
    defined = {
        (kind, name): vars(owner)[name]
        for kind, names in looked_at.items()
        for name in names
        for owner in [next((one for one in kind.__mro__ if name in vars(one)), None)]
        if owner is not None and _is_own(owner)
    }
    methods = {key: method for key, method in defined.items() if type(method) is not property}
    suspects = {key: code for key, method in methods.items() for code in [_code_of(method)] if _does_something(code)}
    if not suspects:
        return {}
    used = _names_used((*looked_at, type(trainer)), {name for _, name in suspects})
    rows = {name: find("hook", name) for _, name in suspects if name not in used}
    return {
        f"{kind.__name__}.{name}": row.instead
        for kind, name in sorted(suspects, key=lambda key: (key[0].__name__, key[1]))
        for row in [rows.get(name)]
        if row is not None
    }


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in _LIGHTNINGS


def _code_of(method: Any) -> Optional[CodeType]:
    """Return the code of a function or of a descriptor in a class, without calling the program's code."""
    if type(method) in (staticmethod, classmethod):
        method = method.__func__
    elif type(method) is property:
        method = method.fget
    while type(method) is FunctionType and "__wrapped__" in vars(method):
        method = vars(method)["__wrapped__"]
    return method.__code__ if type(method) is FunctionType else None


def _does_something(code: Optional[CodeType]) -> bool:
    return code is not None and any(one.opname not in _NOTHING for one in dis.get_instructions(code))


def _names_used(kinds: Iterable[type], wanted: set[str]) -> set[str]:
    """Return the hooks that the program's code may call: the code of its classes, of their modules, and on the stack.

    Calls in a function of the same name are ignored, since they are calls of ``super()``.
    """
    own = {owner for kind in kinds for owner in kind.__mro__ if _is_own(owner)}
    modules = {one.__module__ for one in own} | {"__main__"}
    beside = [value for name in modules for value in list(vars(sys.modules[name]).values())]
    own |= {value for value in beside if issubclass(type(value), type) and value.__module__ in modules}
    codes = [_code_of(value) for value in beside]
    codes += [_code_of(one) for owner in own for one in list(vars(owner).values())]
    frame: Any = sys._getframe()
    while frame is not None:
        if _root(frame) not in (*_LIGHTNINGS, "lightning_patches"):
            codes.append(frame.f_code)
        frame = frame.f_back
    names: set[str] = set()
    texts: set[str] = set()
    for code in codes:
        if code is not None:
            _collect(code, names, texts)
    return {name for name in wanted if name in names or any(_is_made_of(name, text) for text in texts)}


def _is_made_of(name: str, text: str) -> bool:
    """True if the string may produce the name: ``f"on_{what}_end"``, ``"on_%s_end"``, or the name itself."""
    pieces = re.split(r"%s|{\w*}", text)
    if "_" not in text or sum(map(len, pieces)) <= len("on_"):
        return False
    if len(pieces) > 1:
        return re.fullmatch(".*".join(map(re.escape, pieces)), name) is not None
    return name.endswith(text) or (text[-1] == "_" and name.startswith(text))


def _root(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _collect(code: CodeType, names: set[str], texts: set[str]) -> None:
    """Collect the attribute names and the strings in code, for example of ``getattr(self, "on_epoch_end")``."""
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD") and one.argval != code.co_name:
            names.add(one.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _collect(constant, names, texts)
        elif isinstance(constant, str):
            texts.add(constant)


PATCH = warning(
    Target("pytorch.trainer.configuration_validator:__verify_train_val_loop_configuration", _verify_configuration),
    added="0.2.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(17187,)),
    impact=Impact(
        "A model or a callback that was written for Lightning 1.x has hooks that 2.x never calls, such as "
        "on_epoch_end or training_step_end. It trains without them, and there is no warning.",
        ("on_epoch_end is never called", "a hook of a callback does nothing in Lightning 2"),
    ),
    when=" about methods that are not empty and that no other code seems to call",
    note="The warning names the hook that upstream's migration guide recommends. If the program itself calls such a "
    "method, there is no warning, provided that the call is in its classes, in their modules or in running functions.",
)
