"""In a resumed epoch, logged means and metrics cover the whole epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.distributed._ranks import are_several

_FIELDS = ("fx", "name", "prog_bar", "logger", "on_step", "on_epoch", "enable_graph", "metric_attribute")
_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"
_LOGGER_CONNECTOR = "pytorch.trainer.connectors.logger_connector"

_KEY = "_values_of_epoch"
"""Key in the state of the epoch loop, and attribute of loops and results whose saved values are not yet restored."""


def _on_save_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_save_checkpoint(self: Any) -> Any:
        state = original(self)
        logged = {key: one for key, one in self._results.items() if one.meta.on_epoch and not one.has_reset}
        if logged and not are_several():
            state[_KEY] = {key: _state(one) for key, one in logged.items()}
        return state

    return on_save_checkpoint


def _state(logged: Any) -> dict[str, Any]:
    """Return the state of a logged value or metric in plain types."""
    meta, metric = logged.meta, logged if logged.is_tensor else logged.value
    options = {**{name: getattr(meta, name) for name in _FIELDS}, "reduce_fx": meta.reduce_fx.__name__}
    values = {name: _copy(getattr(metric, name)) for name in metric._defaults}
    return {"values": values, "updates": metric._update_count, "options": options}


def _copy(value: Any, device: Any = None) -> Any:
    if isinstance(value, list):
        return [_copy(one, device) for one in value]
    return value.detach().clone().to(device or value.device)


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        if _KEY in state_dict:
            setattr(self, _KEY, state_dict[_KEY])

    return on_load_checkpoint


def _on_batch_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_batch_start(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        trainer = self.trainer
        loop = trainer.fit_loop.epoch_loop
        saved = vars(loop).pop(_KEY, None) if trainer.training else None
        if saved and loop.batch_progress.current.ready > 1:  # otherwise the epoch of the checkpoint has ended
            setattr(loop._results, _KEY, saved)
            for state in saved.values():
                name = state["options"]["metric_attribute"]
                if name:
                    _restore(trainer.lightning_module.get_submodule(name), state)

    return on_batch_start


def _restore(metric: Any, state: dict[str, Any]) -> None:
    device = metric.value.device if hasattr(metric, "is_tensor") else metric.device
    for name, value in state["values"].items():
        setattr(metric, name, _copy(value, device))
    metric._update_count, metric._computed = state["updates"], None


def _update_metrics(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_metrics(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        state = vars(self).get(_KEY, {}).pop(key, None)
        if state and self[key].is_tensor:
            _restore(self[key], state)
        original(self, key, *args, **kwargs)

    return update_metrics


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any) -> None:
        loop, results, added = self.epoch_loop, self.epoch_loop._results, []
        saved = vars(loop).pop(_KEY, None) or vars(results).pop(_KEY, {})
        for key, state in saved.items():  # what the rest of the epoch has not logged again
            name = state["options"]["metric_attribute"]
            metric = self.trainer.lightning_module.get_submodule(name) if name else None
            if key not in results and (metric or state["options"]["reduce_fx"] in ("mean", "sum", "max", "min")):
                value = metric or state["values"]["value"].to(self.trainer.strategy.root_device)
                results.log(value=value, **state["options"])
                _restore(metric or results[key], state)
                added.append(key)
        original(self)
        for key in added:
            del results[key]

    return on_advance_end


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any, metrics: Any = None, fx: Any = None) -> None:
        if metrics is fx is None:  # the epoch has ended
            vars(self).pop(_KEY, None)
        original(self, metrics, fx)

    return reset


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "epoch metrics of the resumed epoch"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_EPOCH_LOOP}.on_save_checkpoint", _on_save_checkpoint),
        Target(f"{_EPOCH_LOOP}.on_load_checkpoint", _on_load_checkpoint),
        Target("pytorch.loops.fit_loop:_FitLoop.on_advance_end", _on_advance_end),
        Target(f"{_LOGGER_CONNECTOR}.logger_connector:_LoggerConnector.on_batch_start", _on_batch_start),
        Target(f"{_LOGGER_CONNECTOR}.result:_ResultCollection.update_metrics", _update_metrics),
        Target(f"{_LOGGER_CONNECTOR}.result:_ResultCollection.reset", _reset),
    ),
    impact=Impact(
        "If a run is resumed within an epoch, the epoch means of self.log and the metrics of torchmetrics cover only "
        "the rest of that epoch. ModelCheckpoint and EarlyStopping decide by them.",
        (
            "epoch mean is wrong after resuming in the middle of an epoch",
            "train_loss_epoch of the resumed epoch covers only the remaining batches",
            "torchmetrics value of a resumed epoch lacks the batches before the checkpoint",
        ),
        would_tell="that the checkpoint was saved within an epoch",
    ),
    after=("resumed-metrics", "first-batch-logged", "logged-metrics-device", "plateau-waits-for-validation"),
    opt_in="users who resume runs within an epoch, and log epoch metrics in training",
    signs=("ckpt_path on_epoch",),
    note="The sums and counts of the epoch are in the checkpoint, in the state of the epoch loop. Lightning without "
    "the patch ignores them. Opt-in because programs restore their metrics themselves. On several ranks nothing is "
    "saved, since a checkpoint has the values of one rank.",
)
