"""Lightning below 2.2 keeps modules in the evaluation mode that the model chose."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_MODES = "_lightning_patches_modes"


def _keep(loop: Any) -> None:
    vars(loop)[_MODES] = [(module, module.training) for module in loop.trainer.lightning_module.modules()]


def _restore(loop: Any) -> None:
    for module, training in vars(loop).pop(_MODES, ()):
        module.training = training


def _reset(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset(self: Any) -> None:
        _keep(self)
        original(self)
        _restore(self)

    return reset


def _begin(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def begin(self: Any) -> Any:
        _keep(self)
        return original(self)

    return begin


def _end_evaluation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _on_evaluation_model_train(self: Any) -> None:
        hook = "on_test_model_train" if self.trainer.testing else "on_validation_model_train"
        helpers = upstream_module(namespace, "pytorch.utilities.model_helpers")
        if helpers.is_overridden(hook, self.trainer.lightning_module):
            original(self)
        else:
            _restore(self)

    return _on_evaluation_model_train


def _end_prediction(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_run_end(self: Any) -> Any:
        results = original(self)
        _restore(self)
        return results

    return on_run_end


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "modules that are in evaluation mode when fit starts stay in that mode"),
    affected=(">=2.0.0,<2.2.0",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.reset", _reset),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop._on_evaluation_model_eval", _begin),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop._on_evaluation_model_train", _end_evaluation),
        Target("pytorch.loops.prediction_loop:_PredictionLoop.on_run_start", _begin),
        Target("pytorch.loops.prediction_loop:_PredictionLoop.on_run_end", _end_prediction),
    ),
    upstream=Upstream(issues=(18930,), pull_requests=(18951,), commit="3d448ac48d", fixed_in="2.2.0"),
    impact=Impact(
        "Modules that the model has put into evaluation mode, such as a frozen backbone with batch norm or "
        "dropout, are switched back to training mode when fit starts and after each validation.",
        ("frozen backbone is put back into train mode", "eval mode of a submodule is lost when fit begins"),
    ),
    opt_in="users who put a part of the model into evaluation mode, on releases below 2.2.0",
    around=("mid-epoch-resume", "resumed-metrics"),
    note="Opt-in because programs rely on Lightning to switch to training mode: with the patch, as from 2.2.0 "
    "on, a model that is in evaluation mode when fit starts stays in it. Models from from_pretrained() "
    "are in this mode. Set the mode that you want. on_validation_model_train and on_test_model_train are "
    "called if the module overrides them.",
)
