"""self.log of a plain tensor costs less.

It checks the tensor once, and reuses the record of its options.
"""

from typing import Any, Callable

from lightning_patches.engine.functions import home_of, stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream

_TO_TENSOR = "_LightningModule__to_tensor"
_REDUCTIONS = ("mean", "min", "max", "sum")


# Both functions check themselves that the code is Lightning's. `Target.stock` would cost more at each self.log than the
# patch saves.
def _log(original: Any, namespace: str) -> Callable[..., None]:
    stock = stock_of(original)
    names = stock.__globals__
    old = "_distributed_available" in stock.__code__.co_names  # 2.0
    to_tensor = getattr(names.get("LightningModule"), _TO_TENSOR, None)
    apply = names.get("apply_to_collection")
    as_shipped = home_of(to_tensor) == names.get("__name__") and home_of(apply) == "lightning_utilities.core.apply_func"

    def log(
        self: Any,
        name: str,
        value: Any,
        prog_bar: bool,
        logger: Any,
        on_step: Any,
        on_epoch: Any,
        reduce_fx: Any,
        enable_graph: bool,
        sync_dist: bool,
        sync_dist_group: Any,
        add_dataloader_idx: bool,
        batch_size: Any,
        metric_attribute: Any,
        rank_zero_only: bool,
    ) -> None:
        trainer = self._trainer
        # Use Lightning's code for calls that end in an error or a warning, or that might call the program's code again.
        if (
            type(value) is not names["Tensor"]
            or not as_shipped
            or getattr(type(self), _TO_TENSOR) is not to_tensor
            or names["apply_to_collection"] is not apply
            or type(trainer) is not names["pl"].trainer.trainer.Trainer
            or self._fabric is not None
            or trainer.barebones
            or value.numel() != 1
            or "/dataloader_idx_" in name
            or (logger and trainer.logger is None)
            or (results := trainer._results) is None
            or (hook := self._current_fx_name) is None
            or (
                batch_size is None
                and trainer.training
                and names["is_param_in_hook_signature"](self.training_step, "dataloader_iter", explicit=True)
            )
        ):
            original(
                *(self, name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, enable_graph, sync_dist),
                *(sync_dist_group, add_dataloader_idx, batch_size, metric_attribute, rank_zero_only),
            )
            return
        on_step, on_epoch = names["_FxValidator"].check_logging_and_get_default_levels(
            hook, on_step=on_step, on_epoch=on_epoch
        )
        if value.requires_grad:  # the record copies it
            value = value.detach()
        if value.ndim:
            value = value.squeeze()
        if old:
            value = value.to(self.device)
        connector = trainer._logger_connector
        if connector.should_reset_tensors(hook):
            results.reset(metrics=False, fx=hook)
        results.log(
            hook,
            name,
            value,
            prog_bar=prog_bar,
            logger=True if logger is None else logger,
            on_step=on_step,
            on_epoch=on_epoch,
            reduce_fx=reduce_fx,
            enable_graph=enable_graph,
            add_dataloader_idx=add_dataloader_idx,
            batch_size=batch_size,
            sync_dist=sync_dist
            and (names["_distributed_available"]() if old else trainer._accelerator_connector.is_distributed),
            sync_dist_fn=trainer.strategy.reduce,
            sync_dist_group=sync_dist_group,
            metric_attribute=metric_attribute,
            rank_zero_only=rank_zero_only,
        )
        connector._current_fx = hook

    return _like(original, log)


def _log_result(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    stock = stock_of(original)
    names = stock.__globals__
    known = names.get("_Metadata"), names.get("_Sync")
    detach = names.get("recursive_detach")
    as_shipped = home_of(detach).endswith(".utilities.memory")
    moves = "to" in stock.__code__.co_names  # 2.4 and later

    def log(
        self: Any,
        fx: str,
        name: str,
        value: Any,
        prog_bar: bool,
        logger: bool,
        on_step: bool,
        on_epoch: bool,
        reduce_fx: Any,
        enable_graph: bool,
        sync_dist: bool,
        sync_dist_fn: Any,
        sync_dist_group: Any,
        add_dataloader_idx: bool,
        batch_size: Any,
        metric_attribute: Any,
        rank_zero_only: bool,
    ) -> None:
        index = self.dataloader_idx
        suffix = f".{index}" if add_dataloader_idx and index is not None else ""
        key = f"{fx}.{name}{suffix}"
        is_plain = as_shipped and names["recursive_detach"] is detach and type(value) is names["Tensor"]
        metric: Any = self.get(key) if is_plain and value.device.type != "xla" else None
        meta: Any = None if metric is None else metric.meta
        # Check if Lightning's new record would equal the stored one. If that is not obvious, let Lightning handle it.
        if (
            meta is not None
            and (type(meta), type(sync := meta._sync)) == known == (names["_Metadata"], names["_Sync"])
            and meta.prog_bar is prog_bar
            and meta.logger is logger
            and meta.on_step is on_step
            and meta.on_epoch is on_epoch
            and (
                (kept := meta.reduce_fx) is reduce_fx
                or (type(reduce_fx) is str and reduce_fx in _REDUCTIONS and kept is vars(names["torch"])[reduce_fx])
            )
            and meta.enable_graph is enable_graph
            and meta.add_dataloader_idx is add_dataloader_idx
            and meta.dataloader_idx is index
            and meta.metric_attribute is metric_attribute
            and meta.name == name
            and meta.fx == fx + suffix
            and sync._should is sync_dist
            and sync.fn == sync_dist_fn
            and sync._group is sync_dist_group
            and sync.rank_zero_only is rank_zero_only
            and sync._op == kept.__name__
        ):
            if value.requires_grad and not enable_graph:
                value = value.detach()
            if moves:
                metric.to(value.device)
            self.update_metrics(key, value, self._extract_batch_size(metric, batch_size, meta))
            return
        original(
            *(self, fx, name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, enable_graph, sync_dist),
            *(sync_dist_fn, sync_dist_group, add_dataloader_idx, batch_size, metric_attribute, rank_zero_only),
        )

    return _like(original, log)


def _like(original: Any, log: Any) -> Callable[..., None]:
    """Copy the original's defaults, and disable torch.compile if the original does (2.5 and later)."""
    stock = stock_of(original)
    log.__defaults__ = stock.__defaults__
    if hasattr(original, "_torchdynamo_disable"):
        disabled: Any = stock.__globals__["torch"].compiler.disable(log)
    elif home_of(original) == "torch._compile":  # import-without-dynamo
        disabled = original.__globals__["_disable_dynamo"](log)
    else:
        return log  # type: ignore[no-any-return]
    del disabled.__wrapped__
    return disabled  # type: ignore[no-any-return]


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.core.module:LightningModule.log", _log),
        Target("pytorch.trainer.connectors.logger_connector.result:_ResultCollection.log", _log_result),
    ),
    upstream=Upstream(issues=(20388,)),
    impact=Impact(
        "Each self.log searches its value three times for nested values, and creates two new objects from its "
        "options only to compare them with those of the last step.",
        ("self.log is slow", "apply_to_collection takes long in self.log"),
    ),
    note="A plain tensor with one element is used as it is, and the options are compared one by one. All other "
    "values, changed options, subclasses of the Trainer, replaced classes or methods of Lightning, and calls that "
    "raise or warn use Lightning's code.",
)
