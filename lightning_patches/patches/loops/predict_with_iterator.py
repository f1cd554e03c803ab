"""predict(return_predictions=False) works with a predict_step that takes the iterator."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _predict_step(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _predict_step(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except UnboundLocalError as error:
            # The bug is in the original's last statement, which has nothing to store here. All other work is done.
            raised = error.__traceback__ and error.__traceback__.tb_next
            if raised is None or raised.tb_next is not None or self._return_predictions:
                raise

    return _predict_step


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<2.5.0",),
    targets=(Target("pytorch.loops.prediction_loop:_PredictionLoop._predict_step", _predict_step),),
    upstream=Upstream(pull_requests=(20484,), commit="1e32ebf272", fixed_in="2.5.0"),
    impact=Impact(
        "predict(return_predictions=False) raises an UnboundLocalError after its first batch if predict_step takes "
        "dataloader_iter.",
        ("cannot access local variable 'any_on_epoch' where it is not associated with a value",),
        error="UnboundLocalError: cannot access local variable 'any_on_epoch' where it is not associated with a value",
    ),
)
