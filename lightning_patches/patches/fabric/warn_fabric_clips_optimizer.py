"""Warn when fabric.clip_gradients clips parameters that are not the module's."""

from typing import Any, Callable, Iterator

from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import Notes, is_applied, observe, stored, warn, warning

_STRATEGY = "fabric.strategies.strategy:Strategy"
_FIX = "fabric-equals-torch"
_seen = Notes()


def _clip(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def before(self: Any, module: Any, optimizer: Any, *_: Any, **__: Any) -> None:
        if _seen.find(module):
            return
        _seen.add(module, True)
        mine = {id(parameter) for parameter in _parameters_of(module)}
        clipped = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        others = sum(id(parameter) not in mine for parameter in clipped)
        if 0 < others < len(clipped) and not is_applied(_FIX, namespace):
            warn(
                "fabric-clips-optimizer",
                f"fabric.clip_gradients clips all gradients of the optimizer together, and {others} of {len(clipped)} "
                f"are not from the {type(module).__name__} that you pass. Use an optimizer for each module, "
                f"`torch.nn.utils.clip_grad_norm_(module.parameters(), max_norm)`, or LIGHTNING_PATCHES=default,{_FIX}."
                " If you want to clip all of them together, set "
                "LIGHTNING_PATCHES=default,-warn-fabric-clips-optimizer.",
            )

    return observe(original, before)


def _parameters_of(module: Any) -> Iterator[Any]:
    """Yield the parameters, without calling methods that the program may override."""
    yield from stored(module, "_parameters").values()
    for child in stored(module, "_modules").values():
        if child is not None:
            yield from _parameters_of(child)


PATCH = warning(
    Target(f"{_STRATEGY}.clip_gradients_norm", _clip),
    Target(f"{_STRATEGY}.clip_gradients_value", _clip),
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(),
    impact=Impact(
        "`fabric.clip_gradients(module, optimizer)` ignores the module: it clips all parameters of the optimizer "
        "together, and the norm that it returns is theirs."
    ),
    fixed_by=(_FIX,),
    after=(_FIX,),
    when=" if the optimizer has gradients of the module and of others",
    added="0.3.0",
)
