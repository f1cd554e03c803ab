"""Callbacks from configure_callbacks are those of the module's previous run in this Trainer."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_KEPT = "_configured_callbacks"
"""Attribute of the connector: a module with configured callbacks, and the Trainer's callbacks without and with them."""


def _attach_model_callbacks(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _attach_model_callbacks(self: Any) -> None:
        trainer, module = self.trainer, self.trainer.lightning_module
        owner, without, configured = vars(self).pop(_KEPT, (None, [], []))
        is_unchanged = owner is not None and [*map(id, trainer.callbacks)] == [*map(id, configured)]
        if is_unchanged and owner is not module:
            trainer.callbacks = without
        if not is_unchanged or owner is not module:
            without = list(trainer.callbacks)
            original(self)
        if [*map(id, trainer.callbacks)] != [*map(id, without)]:
            setattr(self, _KEPT, (module, without, list(trainer.callbacks)))

    return _attach_model_callbacks


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "callbacks from configure_callbacks keep their state between runs"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.trainer.connectors.callback_connector:_CallbackConnector._attach_model_callbacks",
            _attach_model_callbacks,
        ),
    ),
    after=("callbacks-replaced-by-subclass", "callbacks-without-none"),
    impact=Impact(
        "Each run calls configure_callbacks and replaces the callbacks of the previous run: after validate, "
        "test(ckpt_path='best') fails, and EarlyStopping has forgotten its score. The callbacks stay in the Trainer "
        "when it runs another module.",
        (
            "test(ckpt_path='best') fails after validate with configure_callbacks",
            "ModelCheckpoint of configure_callbacks loses best_model_path after validate",
        ),
    ),
    opt_in="users who return callbacks with state from configure_callbacks",
    signs=("configure_callbacks",),
    note="Opt-in because a program may return other callbacks for each run. After a change of trainer.callbacks, "
    "configure_callbacks is called again.",
)
