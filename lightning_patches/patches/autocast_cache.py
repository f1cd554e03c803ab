"""``plugins/precision/amp.py``, in ``pytorch`` and in ``fabric``: a forward without gradients inside of autocast.

Autocast keeps the half-precision copy of a weight for the rest of its block. Made under ``torch.no_grad()``, that copy
has no gradient, and torch before its PR 165068 hands it to the training forward after it as well. What was kept is
dropped here whenever gradients come back within Lightning's autocast, and only by a torch that has the bug.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream

_FABRIC = "fabric.plugins.precision.amp"
_PYTORCH = "pytorch.plugins.precision.amp"
_found: Optional[bool] = None
"""What the probe found in this process, ``None`` before it was asked."""
_lock = threading.Lock()
_watched: list[tuple[Any, str, Any, Any]] = []
"""What stands hooked in torch: class, method's name, the original, ours. Empty while no autocast block is open."""
_open = 0


def keeps_casts_without_grad() -> bool:
    """Whether this torch hands a weight's copy that was made without gradients to computations that need them.

    Tried out once per process, on the CPU with a weight of one element: the cache is the same for all devices.
    """
    global _found
    if _found is None:
        _found = _shows_it()
    return _found


def _shows_it() -> bool:
    import torch

    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            weight = torch.ones(1, 1, dtype=torch.float32, device="cpu", requires_grad=True)
            with torch.no_grad():
                torch.mm(weight, weight)
            return not torch.mm(weight, weight).requires_grad
    except RuntimeError:  # a build without this autocast: nothing is known, so nothing is changed
        return False


def _is_compiling() -> bool:
    import torch

    ask = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return ask is not None and bool(ask())


def _forward_context(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def forward_context(self: Any) -> Any:
        # Compiled code does not use the cache, and the probe would see what the compiler makes of it.
        if _found is False or _is_compiling() or not keeps_casts_without_grad():
            return original(self)
        return _without_stale_casts(original, self)

    return forward_context


@contextlib.contextmanager
def _without_stale_casts(original: Callable[..., Any], plugin: Any) -> Iterator[Any]:
    _watch()
    try:
        with original(plugin) as entered:
            yield entered
    finally:
        _unwatch()


def _watch() -> None:
    """Hook what switches gradients on again. Several blocks may be open, in several threads."""
    global _open
    with _lock:
        _open += 1
        if _open > 1:
            return
        import torch

        places = (
            (torch.no_grad, "__exit__"),
            (torch.inference_mode, "__exit__"),
            (torch.enable_grad, "__enter__"),
            (torch.set_grad_enabled, "__init__"),
            (torch.set_grad_enabled, "__exit__"),
        )
        for owner, name in places:
            original = vars(owner)[name]
            ours = _dropping(original, name == "__exit__")
            setattr(owner, name, ours)
            _watched.append((owner, name, original, ours))


def _unwatch() -> None:
    global _open
    with _lock:
        _open -= 1
        if _open:
            return
        while _watched:
            owner, name, original, ours = _watched.pop()
            if vars(owner)[name] is ours:
                setattr(owner, name, original)


def _dropping(original: Callable[..., Any], leaves: bool) -> Callable[..., Any]:
    import torch

    def switch(*args: Any, **kwargs: Any) -> Any:
        were_off = not torch.is_grad_enabled()
        try:
            return original(*args, **kwargs)
        finally:
            # A block that ends inside of an autograd function comes back to gradients only when that ends, unseen.
            if were_off and (leaves or torch.is_grad_enabled()):
                torch.clear_autocast_cache()

    return switch


PATCHES = (
    Patch(
        name="autocast-after-no-grad",
        title="Layers first run under no_grad still get gradients afterwards in mixed precision",
        group="correctness",
        affected=(">=2.0.0,<2.5.5",),
        targets=(
            Target(f"{_PYTORCH}:MixedPrecisionPlugin.forward_context", _forward_context, before="2.1.1"),
            Target(f"{_PYTORCH}:MixedPrecision.forward_context", _forward_context, since="2.1.1"),
        ),
        upstream=Upstream(
            issues=(20644,),
            pull_requests=(20921, 21616),
            commit="216f9ec90c",
            fixed_in="2.5.5",
            tests=("tests/tests_pytorch/plugins/precision/test_amp.py::test_amp_with_no_grad",),
        ),
        impact=Impact(
            "With precision='16-mixed' or 'bf16-mixed', layers that training_step first runs under torch.no_grad() or "
            "inference_mode() get no gradients from what it computes with them afterwards.",
            (
                "element 0 of tensors does not require grad and does not have a grad_fn",
                "It looks like your LightningModule has parameters that were not used in producing the loss",
            ),
        ),
        witnesses=(f"{_PYTORCH}:MixedPrecision.autocast_context_manager",),
        probe=keeps_casts_without_grad,
        note="The cause lies in torch, whose PR 165068 mends it: a probe decides, and with a torch without the "
        "bug nothing changes. Copies of a weight that a user's own autograd function makes are not seen.",
    ),
    Patch(
        name="fabric-autocast-after-no-grad",
        title="Layers first run under no_grad still get gradients afterwards in Fabric's mixed precision",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_FABRIC}:MixedPrecision.forward_context", _forward_context),),
        upstream=Upstream(issues=(20644,), pull_requests=(20921,)),
        impact=Impact(
            "With Fabric(precision='16-mixed') or 'bf16-mixed', layers that a model's forward() or a fabric.autocast() "
            "block first runs under torch.no_grad() get no gradients from what is computed with them afterwards.",
            ("element 0 of tensors does not require grad and does not have a grad_fn",),
        ),
        probe=keeps_casts_without_grad,
        equivalent_to="torch.clear_autocast_cache() after the block under no_grad",
        note="The official fix is for the Trainer only. The cause lies in torch, see autocast-after-no-grad.",
        relied_on="With a torch without the bug, and where no layer runs under no_grad first, nothing changes. With an "
        "affected torch, layers train that did not before: a script that relied on that has to freeze them with "
        "requires_grad_(False).",
        relied_on_tests=(
            "tests/patches/test_autocast_after_no_grad.py::test_with_a_torch_that_is_right_nothing_changes",
        ),
    ),
)
