"""Validation does not change the order of the training data."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any, **kwargs: Any) -> None:
        validation = self.val_loop
        run = validation.run

        def run_isolated() -> Any:
            with upstream_module(namespace, "pytorch.utilities.seed").isolate_rng():
                return run()

        # Replace run() on this object, because the function in the class is decorated and does not give access to the
        # original.
        validation.run = run_isolated
        try:
            original(self, *args, **kwargs)
        finally:
            del validation.run

    return on_advance_end


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "random values in training, which validation no longer affects"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_advance_end", _on_advance_end, since="2.0.0"),
        Target(
            "pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop.on_advance_end", _on_advance_end, before="2.0.0"
        ),
    ),
    upstream=Upstream(issues=(16827,)),
    impact=Impact(
        "Each validation draws random numbers, at least in its DataLoader, that training would have drawn. "
        "With the same seed, the order of the training data and the effect of dropout change as soon as "
        "validation runs more or less often.",
        ("results change with val_check_interval", "validation affects shuffling of training data with a seed"),
    ),
    opt_in="users who compare runs with the same seed that validate at different intervals",
    signs=("seed_everything val_check_interval", "seed_everything check_val_every_n_epoch"),
    note="Opt-in because with the same seed, every run that validates differs from a run without the patch. "
    "The random states of torch, NumPy and Python are restored after each validation; so if nothing else "
    "draws random numbers in between, two validations draw the same ones. Without the patch, give the "
    "validation DataLoader its own generator.",
    around=("validation-on-resume",),
)
