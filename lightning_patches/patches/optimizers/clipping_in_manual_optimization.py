"""Trainer(gradient_clip_val=...) also applies to manual optimization."""

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_PLUGIN = "pytorch.plugins.precision.precision_plugin:PrecisionPlugin"


def _verify(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __verify_manual_optimization_support(trainer: Any, model: Any) -> None:
        original(
            SimpleNamespace(gradient_clip_val=None, accumulate_grad_batches=trainer.accumulate_grad_batches), model
        )

    return __verify_manual_optimization_support


def _clip(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _clip_gradients(
        self: Any, model: Any, optimizer: Any, clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        # Called at each optimizer step, when the gradients are complete and unscaled.
        if not clip_val or not _is_manual(model, namespace):
            original(self, model, optimizer, clip_val, gradient_clip_algorithm=gradient_clip_algorithm)
            return
        upstream_module(namespace, "pytorch.trainer.call")._call_lightning_module_hook(
            model.trainer,
            "configure_gradient_clipping",
            optimizer,
            gradient_clip_val=clip_val,
            gradient_clip_algorithm=gradient_clip_algorithm,
        )

    return _clip_gradients


def _clip_in_1x(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _clip_gradients(
        self: Any,
        model: Any,
        optimizer: Any,
        optimizer_idx: int,
        clip_val: Any = None,
        gradient_clip_algorithm: Any = None,
    ) -> None:
        if not clip_val or not _is_manual(model, namespace):
            original(self, model, optimizer, optimizer_idx, clip_val, gradient_clip_algorithm=gradient_clip_algorithm)
            return
        model.trainer._call_lightning_module_hook(
            "configure_gradient_clipping",
            optimizer,
            optimizer_idx,
            gradient_clip_val=clip_val,
            gradient_clip_algorithm=gradient_clip_algorithm,
        )

    return _clip_gradients


def _is_manual(model: Any, namespace: str) -> bool:
    module = upstream_module(namespace, "pytorch.core.module").LightningModule
    return isinstance(model, module) and not model.automatic_optimization


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.configuration_validator:__verify_manual_optimization_support", _verify),
        Target(f"{_PLUGIN}._clip_gradients", _clip_in_1x, before="2.0.0"),
        Target(f"{_PLUGIN}._clip_gradients", _clip, since="2.0.0", before="2.1.1"),
        Target("pytorch.plugins.precision.precision:Precision._clip_gradients", _clip, since="2.1.1"),
    ),
    upstream=Upstream(issues=(14598,)),
    impact=Impact(
        "With automatic_optimization = False the Trainer rejects gradient_clip_val, because it does not know "
        "when the gradients are complete.",
        (
            "Automatic gradient clipping is not supported for manual optimization",
            "gradient_clip_val in manual optimization",
        ),
        error="MisconfigurationException: Automatic gradient clipping is not supported for manual optimization. ...",
    ),
    opt_in="users who set gradient_clip_val for a model with manual optimization that does not clip gradients itself",
    signs=("automatic_optimization gradient_clip_val -clip_gradients",),
    note="Each step of an optimizer from self.optimizers() clips that optimizer's gradients through "
    "configure_gradient_clipping, as automatic optimization does. Opt-in because upstream leaves clipping "
    "to the model on purpose. Without the patch, call self.clip_gradients(optimizer, "
    "gradient_clip_val=1.0, gradient_clip_algorithm='norm') before each optimizer.step(), and don't set "
    "gradient_clip_val in the Trainer. In 16-mixed precision, self.clip_gradients clips scaled gradients "
    "unless you also enable the opt-in patch clipping-of-scaled-gradients.",
)
