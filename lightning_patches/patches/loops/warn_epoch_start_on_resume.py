"""Warn when on_train_epoch_start is not called because a run was resumed within an epoch."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title

_HOOK = "on_train_epoch_start"


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any) -> None:
        original(self)
        if self.restarted_mid_epoch:
            owners = (self.trainer.lightning_module, *self.trainer.callbacks)
            names = [type(owner).__name__ for owner in owners if not _is_lightnings(owner, namespace)]
            if names:
                notices.warn_once(
                    "epoch-start-on-resume",
                    f"This run was resumed within an epoch. From Lightning 2.5.0 on, on_train_epoch_start is not "
                    f"called for the rest of that epoch: {', '.join(names)} may lack what it sets there. If so, save "
                    f"it in the checkpoint, or also set it in on_train_start.",
                )

    return on_run_start


def _is_lightnings(owner: Any, namespace: str) -> bool:
    hook = getattr(owner, _HOOK, None)
    module = getattr(hook, "__module__", "") or ""
    return hook is None or module.startswith((namespace, "lightning_patches"))


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.5.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),),
    impact=Impact(
        "From 2.5.0 on, a run that is resumed within an epoch does not call on_train_epoch_start for the rest "
        "of that epoch. State that a program sets in this hook, such as the stage of a curriculum, is missing "
        "until the next epoch.",
        ("on_train_epoch_start is not called after resuming in the middle of an epoch",),
    ),
    after=("epoch-start-on-resume",),
    note="This patch fixes nothing: it warns once. There is no warning if neither the module nor a callback of "
    "the program has the hook.",
)
