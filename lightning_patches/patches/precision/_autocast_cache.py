"""A forward without gradients inside of autocast, in the Trainer and in Fabric.

Autocast keeps the half-precision copy of a weight for the rest of its block. Made under ``torch.no_grad()``, that copy
has no gradient, and torch before its PR 165068 hands it to the training forward after it as well. What was kept is
dropped here whenever gradients come back within Lightning's autocast, and only by a torch that has the bug.
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterator, Optional

_found: Optional[bool] = None
"""What the probe found in this process, ``None`` before it was asked."""


_lock = threading.Lock()


_watched: list[tuple[Any, str, Any, Any]] = []
"""What stands hooked in torch: class, method's name, the original, ours. Empty while no autocast block is open."""


_open = 0


def keeps_casts_without_grad() -> bool:
    """Whether this torch hands a weight's copy that was made without gradients to computations that need them.

    Tried out once per process, on the CPU with a weight of one element: the cache is the same for all devices. In a
    thread of its own: modes that count or record operations, as a program may have open here, do not see it.
    """
    global _found
    if _found is None:
        try:
            with ThreadPoolExecutor(1) as thread:
                _found = thread.submit(_shows_it).result()
        except RuntimeError:  # Python is ending, or the system has no thread left
            return False
    return _found


def _shows_it() -> bool:
    import torch

    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
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


def forward_context(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
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
