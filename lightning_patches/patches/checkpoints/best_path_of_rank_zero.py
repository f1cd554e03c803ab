"""Under DDP, all ranks load the best checkpoint of rank zero if its name contains a metric."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target


def _best_path(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _parse_ckpt_path(self: Any, state_fn: Any, ckpt_path: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, state_fn, ckpt_path, *args, **kwargs)
        is_best = ckpt_path == "best" if isinstance(ckpt_path, str) else ckpt_path is None and found is not None
        return self.trainer.strategy.broadcast(found) if is_best and state_fn != "fit" else found

    return _parse_ckpt_path


_CONNECTORS = "pytorch.trainer.connectors.checkpoint_connector"
_STOCK = ("self.trainer.strategy.broadcast",)

PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTORS}:CheckpointConnector._set_ckpt_path", _best_path, before="2.0.0", stock=_STOCK),
        Target(f"{_CONNECTORS}:_CheckpointConnector._parse_ckpt_path", _best_path, since="2.0.0", stock=_STOCK),
    ),
    impact=Impact(
        'test(ckpt_path="best") under DDP fails on every rank except rank zero if the file name contains a metric that '
        "was logged without sync_dist: each rank looks for a file with its value, and only rank zero's exists.",
        ('FileNotFoundError with ckpt_path="best" on rank 1', "best_model_path differs between ranks"),
        error="FileNotFoundError: Checkpoint file not found: ...",
        frames=("/trainer/connectors/checkpoint_connector.py",),
        would_tell="`trainer.checkpoint_callback.best_model_path` on each rank. It is this bug if the paths differ",
    ),
    note="It covers test, validate and predict.",
)
