"""Patches that only warn: each observes functions of Lightning, and changes nothing."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any, Callable, Optional, Tuple

from lightning_patches import notices
from lightning_patches.engine.attributes import is_applied_to
from lightning_patches.engine.distributions import diffs_in, upstream_module
from lightning_patches.patch import Impact, Patch, Target
from lightning_patches.patches import index
from lightning_patches.patches.loops._way_out import Notes as Notes

warn = functools.partial(notices.warn_once, stacklevel=4)
"""Warn once per key and process. In an observation, the warning's location is the caller of the observed function."""


def observe(
    original: Callable[..., Any],
    before: Optional[Callable[..., Any]] = None,
    after: Optional[Callable[..., object]] = None,
) -> Callable[..., Any]:
    """Return a replacement that calls the original, and observations before and after it.

    If an observation raises an exception, nothing happens. Observations must not call code of the program, such as
    properties of a subclass: see :func:`stored`. They must not change or add attributes: see :class:`Notes`.

    Args:
        original: the observed function.
        before: called with the arguments of the call.
        after: called with the result of ``before``, the result of the original, and the arguments. It is not called if
            ``before`` or the original raises an exception.
    """

    def observed(*args: Any, **kwargs: Any) -> Any:
        seen, then = None, after
        if before is not None:
            try:
                seen = before(*args, **kwargs)
            except Exception:
                then = None
        result = original(*args, **kwargs)
        if then is not None:
            try:
                then(seen, result, *args, **kwargs)
            except Exception:
                pass
        return result

    return observed


def stored(value: Any, name: str, default: Any = None) -> Any:
    """Return an attribute from the ``__dict__`` of an object, without calling a property or ``__getattr__``."""
    return object.__getattribute__(value, "__dict__").get(name, default)


def is_manual(module: Any) -> bool:
    """True if a LightningModule optimizes manually, unless its class computes ``automatic_optimization``."""
    name = "automatic_optimization"
    return inspect.getattr_static(module, name) is False or stored(module, f"_{name}") is False


def steps_of(trainer: Any) -> int:
    """Return ``trainer.global_step``, without asking the module if its optimization is automatic."""
    loop = trainer.fit_loop.epoch_loop
    manual: int = loop.manual_optimization.optim_step_progress.total.completed
    return manual + int(loop.automatic_optimization.optim_progress.optimizer_steps)


def is_applied(name: str, namespace: str) -> bool:
    """True if a patch is applied, or is in the source of a fork, judged by its first target."""
    for patch in index():
        if patch.name == name:
            module = upstream_module(namespace, patch.targets[0].module)
            return is_applied_to(patch, module, patch.targets[0]) or name in diffs_in(inspect.getsource(module))
    return False


def warning(
    *targets: Target,
    fixes: Tuple[ModuleType, ...] = (),
    when: str = "",
    after: Tuple[str, ...] = (),
    note: str = "",
    **fields: Any,
) -> Patch:
    """Return the record of a patch that only warns.

    Args:
        targets: the observed functions.
        fixes: the modules of the patches that fix the bug. The first one has the releases, the effect and the numbers,
            unless they are in ``fields``.
        when: completes the sentence "it warns once" of the note.
        after: the patches that this one wraps, in addition to ``fixes``.
        note: more sentences of the note.
        fields: other fields of the record.
    """
    names = tuple(fix.__name__.rpartition(".")[2].replace("_", "-") for fix in fixes)
    if fixes:
        first = fixes[0].PATCH
        known = {"affected": first.affected, "upstream": first.upstream, "fixed_by": names}
        fields = {**known, "impact": Impact(first.impact.summary), **fields}
        note = f"{_fixed_by(names)} {note}"
    return Patch(
        group="correctness",
        targets=targets,
        after=(*names, *after),
        note=f"This patch fixes nothing: it warns once{when}. {note}".strip(),
        **fields,
    )


def _fixed_by(names: Tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"The opt-in patch {names[0]} fixes the bug."
    return f"The opt-in patches {' and '.join(names)} fix the bug."
