"""save_last=True writes a checkpoint even if the run ends before the first validation."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        original(self, trainer, pl_module)
        saved = getattr(self, "_last_checkpoint_saved", self.last_model_path or self.best_model_path)
        if self.save_last and not saved:
            self._save_last_checkpoint(trainer, self._monitor_candidates(trainer))

    return on_train_end


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "last.ckpt"),
    affected=(">=1.8.0,<2.5.3",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_end", _on_train_end, adds=True),),
    upstream=Upstream(
        pull_requests=(20960,),
        commit="72bb751d12",
        fixed_in="2.5.3",
        tests=(
            "tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_save_last_without_save_on_train_epoch_and_without_val",
        ),
    ),
    impact=Impact(
        "A run with ModelCheckpoint(save_last=True) that ends before its first validation writes no "
        "checkpoint, for example nine epochs with check_val_every_n_epoch=10.",
        ("no last.ckpt at the end of training",),
        consequences=(
            Consequence(
                ("No such file or directory: ... last.ckpt",),
                r"Trainer\.fit.? stopped",
                "fit ended, and may have had no validation after which last.ckpt is saved",
            ),
        ),
    ),
    opt_in="users who rely on save_last=True in runs that may end before their first validation",
    signs=("save_last",),
    note="Opt-in because a checkpoint is saved, and its hooks are called, where stock saves none.",
)
