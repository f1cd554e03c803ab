"""Training uses the learning rate that the learning rate finder set."""

from __future__ import annotations

import inspect
import math
from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.finders import _tuned

_RATES = ("lr", "initial_lr", "max_lr", "min_lr", "base_lrs", "max_lrs", "_last_lr")


def _apply_suggestion(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def _lr_find(trainer: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        options = signature.bind(trainer, model, *args, **kwargs).arguments
        if not options.get("update_attr"):
            return original(trainer, model, *args, **kwargs)
        name = options.get("attr_name") or getattr(trainer, "auto_lr_find", "")  # 2.x, 1.x
        names = (name,) if name and isinstance(name, str) else ("lr", "learning_rate")
        old = [value for *_, value in _tuned.places(trainer, names)]
        before = [{name: holder[name] for name in _RATES if name in holder} for holder in _holders(trainer)]
        finder = original(trainer, model, *args, **kwargs)
        if finder is None or finder._optimal_idx is None:
            return finder
        # The finder computed, logged and set the suggestion, and then restored the initial state from the checkpoint.
        found = finder.results["lr"][finder._optimal_idx]
        for holder, name, current in list(_tuned.places(trainer, names)):
            if type(current) is not float or current != found:
                _tuned.put(holder, name, found)
        _scale(trainer, before, old, found)
        return finder

    return _lr_find


def _scale(trainer: Any, before: list[dict[str, Any]], old: list[Any], found: float) -> None:
    """Set the rates of a run whose model has the rate ``found``.

    Args:
        trainer: the Trainer after the search.
        before: the rates of the groups and schedulers before the search.
        old: the values of the model's attribute before the search.
        found: the rate that the finder has set.
    """
    holders = list(_holders(trainer))
    if any(holder.get("last_epoch", 0) > 0 for holder in holders):  # a search during training replaces the current rate
        old, used = [], [rate for rates in before for rate in _listed(rates.get("lr"))]
    else:
        used = [rate for rates in before for each in rates.values() for rate in _listed(each)]
        used += [
            rate for optimizer in trainer.optimizers for rate in _listed(getattr(optimizer, "defaults", {}).get("lr"))
        ]
    # If the optimizer does not use the attribute, the found rate becomes its highest one.
    reference = next((value for value in old if value in used), max(used, default=0))
    if not reference:
        return

    def scaled(rate: Any) -> Any:
        if isinstance(rate, list):
            return [scaled(one) for one in rate]
        return rate if rate is None else found if rate == reference else found * (rate / reference)

    changes = [
        (holder, name, holder.get(name), scaled(rate))
        for holder, rates in zip(holders, before)
        for name, rate in rates.items()
        if rate is not None
    ]
    for holder, name, _, rate in changes:
        holder[name] = rate

    def scale_once(*_: Any) -> None:
        # A program that works around the bug scales the rates, too.
        hook.remove()
        for holder, name, left, rate in changes:
            current = _listed(holder.get(name))
            rates = zip(current, _listed(left), _listed(rate))
            if (
                current
                and rate != left
                and all(math.isclose(now * was, one * one, rel_tol=1e-6) for now, was, one in rates)
            ):
                holder[name] = rate

    if hasattr(trainer.optimizers[0], "register_step_pre_hook"):  # since torch 2.0
        hook = trainer.optimizers[0].register_step_pre_hook(scale_once)


def _listed(rates: Any) -> list[Any]:
    return rates if isinstance(rates, list) else [] if rates is None else [rates]


def _holders(trainer: Any) -> Iterator[dict[str, Any]]:
    """Yield the parameter groups, and the attributes of torch's schedulers."""
    import torch

    schedulers = torch.optim.lr_scheduler
    for optimizer in trainer.optimizers:
        yield from optimizer.param_groups
    left = [config.scheduler for config in trainer.lr_scheduler_configs]
    while left:
        scheduler = left.pop()
        if isinstance(scheduler, getattr(schedulers, "LRScheduler", None) or schedulers._LRScheduler):  # 2.x, 1.x
            yield vars(scheduler)
            left += vars(scheduler).get("_schedulers", [])


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "training uses the learning rate that was found"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _apply_suggestion, since="2.0.0"),
        Target("pytorch.tuner.lr_finder:lr_find", _apply_suggestion, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(21068,),
        others=((21068, "2.5.4"),),
        commit="3ed9d4edb7",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_callback_applies_lr_after_restore",),
    ),
    impact=Impact(
        "With the LearningRateFinder callback, Lightning prints 'Learning rate set to' and sets the model's "
        "attribute, but the optimizer trains with the old learning rate. From 2.5.4 on, all parameter groups begin "
        "with the found rate, and a scheduler returns to the old one or, after a warm-up, ends above the found one.",
        ("Learning rate set to", "the optimizer does not use the suggested learning rate"),
    ),
    note="The rates of all parameter groups and of torch's schedulers are multiplied by the found rate, divided by the "
    "old value of the model's attribute: training equals a run whose attribute was set to the found rate by hand. "
    "If the optimizer does not use the attribute, the found rate becomes its highest one. The official change "
    "(2.5.4) sets the current rate of all groups to the found one, and leaves the schedulers unchanged.",
    after=("lr-finder-train-loader",),
    around=("tuner-cleanup-on-error", "tuner-temporary-checkpoint"),
)
