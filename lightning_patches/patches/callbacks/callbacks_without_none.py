"""A callback that is None is left out, such as an optional one of LightningCLI."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _attach_model_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _attach_model_callbacks(self: Any) -> None:
        # Not in Trainer.__init__: a program may look for None in trainer.callbacks before the run.
        callbacks = getattr(self.trainer, "callbacks", ())
        if any(callback is None for callback in callbacks):
            self.trainer.callbacks = [callback for callback in callbacks if callback is not None]
        original(self)

    return _attach_model_callbacks


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.connectors.callback_connector:_CallbackConnector._attach_model_callbacks",
            _attach_model_callbacks,
        ),
    ),
    after=("callbacks-replaced-by-subclass",),
    upstream=Upstream(proposed=(21527,)),
    impact=Impact(
        "An optional callback of LightningCLI that the configuration does not set, or any None in the Trainer's "
        "callbacks, ends fit in an AttributeError.",
        (
            "LightningCLI optional callback null fails",
            "AttributeError: 'NoneType' object has no attribute 'on_exception'",
        ),
        error="AttributeError: 'NoneType' object has no attribute 'on_exception'",
    ),
)
