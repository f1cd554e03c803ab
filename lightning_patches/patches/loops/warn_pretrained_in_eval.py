"""Warn when a module with trainable parameters is in evaluation mode at the start of fit."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, stored, warn, warning
from lightning_patches.patches.checkpoints.compiled_names import parts


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, after=_after)


def _after(_: None, __: None, self: Any) -> None:
    model = self.trainer._accelerator_connector.strategy._lightning_module
    names = [name for name, part in parts(model) if stored(part, "training") is False and _is_trained(part)]
    if names:
        warn(
            "pretrained-in-eval",
            f"{len(names)} modules are in evaluation mode at the start of training, though they have parameters "
            f"that are trained: {notices.cut(', '.join(names), 100)}. They train without dropout and with fixed "
            "batch norm statistics. Call train() on them, for example in on_train_start, or freeze them.",
        )


def _is_trained(part: Any) -> bool:
    return any(each is not None and each.requires_grad for each in stored(part, "_parameters", {}).values())


PATCH = warning(
    Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),
    added="0.3.0",
    affected=(">=2.2.0,<2.5.5",),
    upstream=Upstream(issues=(20646, 20105)),
    impact=Impact(
        "A pretrained model that is loaded in evaluation mode, such as a model of transformers, stays in this "
        "mode: it trains without dropout and with fixed batch norm statistics. Below 2.2.0, fit calls train().",
        (
            "pretrained model is trained in eval mode",
            "dropout has no effect in training since Lightning 2.2",
            "transformers model stays in eval mode in fit",
        ),
    ),
    after=("epoch-start-on-resume",),
    when=", since some programs keep parts in evaluation mode on purpose",
    note="2.5.5 and later warn about every module in evaluation mode; this patch warns only about modules whose "
    "parameters require a gradient.",
)
