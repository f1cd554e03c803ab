"""``pytorch/callbacks/finetuning.py``: callbacks that train a part of the model later than the rest."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _on_fit_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        stored = self._internal_optimizer_metadata
        if not self._restarting or all(index in stored for index in range(len(trainer.optimizers))):
            original(self, trainer, pl_module)
            return
        # The state was saved before the first epoch, as the learning rate finder does: nothing was stored yet, and the
        # optimizers are as the user made them.
        parameters = dict(pl_module.named_parameters())
        for index, optimizer in enumerate(trainer.optimizers):
            if index in stored:
                optimizer.param_groups = self._apply_mapping_to_param_groups(stored[index], parameters)
        self._restarting = False

    return on_fit_start


def _freeze_before_training(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def freeze_before_training(self: Any, pl_module: Any) -> None:
        known = upstream_module(namespace, "pytorch.callbacks.finetuning").BackboneFinetuning
        if self.train_bn or type(self) is not known or "freeze" in vars(self):
            original(self, pl_module)
        else:
            self.freeze(pl_module.backbone, train_bn=False)

    return freeze_before_training


PATCHES = (
    Patch(
        name="finetuning-with-lr-finder",
        title="BaseFinetuning and LearningRateFinder can be used together",
        group="crash",
        affected=(">=2.0.0,<2.6.0",),
        targets=(Target("pytorch.callbacks.finetuning:BaseFinetuning.on_fit_start", _on_fit_start),),
        calls=("pytorch.trainer.trainer:Trainer.optimizers()",),
        upstream=Upstream(
            pull_requests=(21224,),
            commit="b3e0df03eb",
            fixed_in="2.6.0",
            tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_with_backbone_finetuning_callback",),
        ),
        impact=Impact(
            "Training with the LearningRateFinder and BackboneFinetuning (or another BaseFinetuning) callbacks fails "
            "before its first step.",
            ("KeyError: 0",),
        ),
    ),
    Patch(
        name="frozen-batch-norm",
        title="BackboneFinetuning(train_bn=False) freezes batch norm with the rest of the backbone",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target("pytorch.callbacks.finetuning:BackboneFinetuning.freeze_before_training", _freeze_before_training),
        ),
        calls=("pytorch.callbacks.finetuning:BaseFinetuning.freeze()",),
        upstream=Upstream(issues=(21531, 20629), pull_requests=(21652,)),
        impact=Impact(
            "BackboneFinetuning(train_bn=False) still trains the batch norm layers of the backbone while it is "
            "frozen: their weights and running statistics change.",
            ("batch norm is trained with train_bn=False", "running_mean of the frozen backbone changes"),
        ),
        equivalent_to="a callback derived from it that calls self.freeze(pl_module.backbone, train_bn=self.train_bn)",
        relied_on="With train_bn=True, the default, and in callbacks of a class derived from it nothing changes: they "
        "may have a freeze of their own, or switch batch norm on again. A "
        "script that says train_bn=False, and counts on batch norm being trained while the rest "
        "is frozen, has to say train_bn=True.",
        relied_on_tests=("tests/patches/test_frozen_batch_norm.py::test_everybody_else_trains_as_before",),
    ),
)
