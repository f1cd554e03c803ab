"""BackboneFinetuning(train_bn=False) freezes batch norm with the rest of the backbone."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _freeze_before_training(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def freeze_before_training(self: Any, pl_module: Any) -> None:
        if self.train_bn:
            original(self, pl_module)
        else:
            self.freeze(pl_module.backbone, train_bn=False)

    return freeze_before_training


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "batch norm of a frozen backbone is not trained"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.callbacks.finetuning:BackboneFinetuning.freeze_before_training",
            _freeze_before_training,
            stock=("self", "self.freeze"),
        ),
    ),
    upstream=Upstream(issues=(21531, 20629), pull_requests=(21652,)),
    impact=Impact(
        "BackboneFinetuning(train_bn=False) still trains the batch norm layers of the frozen backbone: their weights "
        "and running statistics change.",
        ("batch norm is trained with train_bn=False", "running_mean of the frozen backbone changes"),
    ),
    note="With train_bn=True, the default, nothing changes. Subclasses are unchanged, because they may "
    "override freeze or enable batch norm again. A script with train_bn=False that relies on trained "
    "batch norm must set train_bn=True. Without the patch, use a subclass that calls "
    "self.freeze(pl_module.backbone, train_bn=self.train_bn) in freeze_before_training.",
)
