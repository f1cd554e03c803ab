"""BaseFinetuning and LearningRateFinder can be used together."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _on_fit_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        stored = self._internal_optimizer_metadata
        if not self._restarting or all(index in stored for index in range(len(trainer.optimizers))):
            original(self, trainer, pl_module)
            return
        # The learning rate finder saved this state before the first epoch, when the callback had stored nothing yet.
        # Keep the optimizers as the user created them.
        parameters = dict(pl_module.named_parameters())
        for index, optimizer in enumerate(trainer.optimizers):
            if index in stored:
                optimizer.param_groups = self._apply_mapping_to_param_groups(stored[index], parameters)
        self._restarting = False

    return on_fit_start


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.6.0",),
    targets=(Target("pytorch.callbacks.finetuning:BaseFinetuning.on_fit_start", _on_fit_start),),
    upstream=Upstream(
        pull_requests=(21224,),
        commit="b3e0df03eb",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_with_backbone_finetuning_callback",),
    ),
    impact=Impact(
        "fit with both LearningRateFinder and a finetuning callback (BackboneFinetuning, or another "
        "BaseFinetuning) fails before its first step.",
        ("KeyError: 0",),
        error="KeyError: 0",
    ),
)
