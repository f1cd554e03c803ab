"""Clear autocast's cache after a forward without gradients, in the Trainer and in Fabric.

Autocast caches the half-precision copy of a weight until the end of its block. A copy that was created under
``torch.no_grad()`` has no gradient, but torch before its PR 165068 also uses it in a later forward with gradients. If
torch has this bug, this module clears the cache whenever gradients are enabled again inside Lightning's autocast.
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterator, Optional

_found: Optional[bool] = None
"""Result of the probe in this process; ``None`` before its first call."""


_lock = threading.Lock()


_watched: list[tuple[Any, str, Any, Any]] = []
"""Patched methods of torch: class, name, original, replacement. Empty while no autocast block is open."""


_open = 0


def keeps_casts_without_grad() -> bool:
    """True if this torch uses cached copies without gradients in computations that need gradients.

    torch is tested once per process with a weight of one element on the CPU, since all devices share the cache. The
    test runs in a new thread, so that the program's modes that count or record operations don't see it.
    """
    global _found
    if _found is None:
        try:
            with ThreadPoolExecutor(1) as thread:
                _found = thread.submit(_shows_it).result()
        except RuntimeError:  # the interpreter is exiting, or no thread can be started
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
    except RuntimeError:  # this build has no autocast for the CPU: change nothing
        return False


def _is_compiling() -> bool:
    import torch

    ask = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return ask is not None and bool(ask())


def forward_context(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def forward_context(self: Any) -> Any:
        # Compiled code does not use the cache, and the probe would be compiled, too.
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
    """Patch the methods that enable gradients again. Several blocks may be open, in several threads."""
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
            # If a block ends inside an autograd function, gradients are enabled only when that function ends, which
            # this code can't detect. So clear the cache whenever a block ends.
            if were_off and (leaves or torch.is_grad_enabled()):
                torch.clear_autocast_cache()

    return switch
