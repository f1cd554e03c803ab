"""A callback from configure_callbacks replaces the Trainer's callback of its base class."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _attach_model_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _attach_model_callbacks(self: Any) -> None:
        before = list(self.trainer.callbacks)
        original(self)
        of_model = tuple(type(one) for one in self.trainer.callbacks if all(one is not other for other in before))
        plain = upstream_module(namespace, "pytorch.callbacks.callback").Callback
        self.trainer.callbacks = [
            one
            for one in self.trainer.callbacks
            if type(one) is plain
            or all(one is not other for other in before)
            or not any(issubclass(kind, type(one)) for kind in of_model)
        ]

    return _attach_model_callbacks


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "the replaced callback does nothing"),
    affected=(">=2.0.0,<2.1.0",),
    targets=(
        Target(
            "pytorch.trainer.connectors.callback_connector:_CallbackConnector._attach_model_callbacks",
            _attach_model_callbacks,
        ),
    ),
    upstream=Upstream(
        pull_requests=(18508,),
        commit="3bfd7b2558",
        fixed_in="2.1.0",
        tests=("tests/tests_pytorch/trainer/connectors/test_callback_connector.py::test_attach_model_callbacks",),
    ),
    impact=Impact(
        "If the model's configure_callbacks returns a subclass of one of the Trainer's callbacks, such as "
        "ModelCheckpoint, it is added instead of replacing that callback: both run, and both write files.",
        ("configure_callbacks does not replace ModelCheckpoint",),
    ),
    opt_in="users who return a subclass of one of the Trainer's callbacks from configure_callbacks",
    signs=("configure_callbacks",),
    note="Opt-in because a program may rely on both callbacks.",
)
