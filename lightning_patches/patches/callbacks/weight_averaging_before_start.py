"""WeightAveraging does not touch the trained weights before it starts averaging."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, Iterable, Iterator

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import parts

_CALLBACK = "pytorch.callbacks.weight_averaging:WeightAveraging"


_first: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
"""By average model: the sums of its weights before the first update."""


def _is_unused(callback: Any, namespace: str) -> bool:
    """True if nothing was averaged yet and the average model still has the weights from before the training.

    The average model's counter alone is not enough: other code may change the weights or reset the counter. Returns
    False for a class that overrides more than ``should_update``.
    """
    base = upstream_module(namespace, "pytorch.callbacks.weight_averaging").WeightAveraging
    # Not with `Target.stock`: it would have to list all attributes of the class but one, and they differ by release.
    names = {name for name in dir(base) if not name.startswith("__")} - {"should_update"}
    if any(name in vars(callback) or getattr(type(callback), name) is not getattr(base, name) for name in names):
        return False
    average = callback._average_model
    return _has_counted_nothing(average) and average in _first and _sums(_weights(average)) == _first[average]


def _has_counted_nothing(average: Any) -> bool:
    import torch

    return isinstance(average, torch.optim.swa_utils.AveragedModel) and int(average.n_averaged) == 0


def _sums(tensors: Iterable[Any]) -> list[Any]:
    import torch

    kinds = {"mps": torch.float32}
    return [
        each.detach().sum(dtype=kinds.get(each.device.type, torch.float64)).item()
        for each in tensors
        if isinstance(each, torch.Tensor) and each.is_floating_point()
    ]


def _weights(module: Any) -> Iterator[Any]:
    """Iterate over the weights without calling ``parameters``, which the program may override."""
    for _, part in parts(module):
        yield from vars(part).get("_parameters", {}).values()


def _note(average: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the dtype does not support sum()
        _first[average] = _sums(_weights(average))


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if _has_counted_nothing(self._average_model) and self._average_model not in _first:
            _note(self._average_model)

    return setup


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        original(self, trainer, pl_module, checkpoint)
        if _has_counted_nothing(self._average_model) and _first.pop(self._average_model, None) is not None:
            kept, current = (checkpoint.get(name, {}).values() for name in ("state_dict", "current_model_state"))
            if not current or _sums(kept) == _sums(current):  # as saved before the start
                _note(self._average_model)

    return on_load_checkpoint


def _only_with_an_average(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def put_in(self: Any, pl_module: Any) -> None:
        if not _is_unused(self, namespace):
            original(self, pl_module)

    return put_in


def _on_save_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_save_checkpoint(self: Any, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        original(self, trainer, pl_module, checkpoint)
        if _is_unused(self, namespace):
            checkpoint["state_dict"] = checkpoint["current_model_state"]

    return on_save_checkpoint


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the weights that are validated, saved and kept before averaging starts"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.setup", _setup),
        Target(f"{_CALLBACK}.on_load_checkpoint", _on_load_checkpoint),
        Target(f"{_CALLBACK}._swap_models", _only_with_an_average),
        Target(f"{_CALLBACK}._copy_average_to_current", _only_with_an_average),
        Target(f"{_CALLBACK}.on_save_checkpoint", _on_save_checkpoint),
    ),
    upstream=Upstream(issues=(21724,), pull_requests=(21732, 21754)),
    impact=Impact(
        "If WeightAveraging or EMAWeightAveraging starts averaging later than at the first step, each "
        "validation and checkpoint before that uses the initial weights. A run that ends before averaging "
        "starts ends with the initial weights: all training is lost.",
        (
            "validation loss does not change with WeightAveraging",
            "initial weights after training with EMAWeightAveraging",
        ),
    ),
    note="Averages from the first step on are unchanged, and so is everything after averaging has started. "
    "Subclasses that override more than should_update are unchanged, because they may implement the "
    "averaging themselves. An average model that another callback updates is unchanged, too. Without the "
    "patch, remove the callback until averaging starts.",
)
