"""LightningCLI accepts a checkpoint of another module class."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream


def _parse_ckpt_path(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def parse_ckpt_path(self: Any) -> None:
        parser = self.parser
        if self.subclass_mode_model or "parse_object" in vars(parser):
            given = _class_of(self.config)
            original(self)
            taken = _class_of(self.config)
            if given not in (None, taken):
                notices.warn_once(
                    "cli-class-of-checkpoint",
                    f"LightningCLI creates a {taken}, which the checkpoint names, instead of the {given} of the "
                    "command line. To create the latter, remove hyper_parameters from the checkpoint.",
                )
            return
        parse_object = parser.parse_object

        def parse_known(values: Any, config: Any, *args: Any, **kwargs: Any) -> Any:
            exits, parser.exit_on_error = parser.exit_on_error, False
            try:
                return parse_object(values, config, *args, **kwargs)
            except Exception:
                values = _known(values, config)
            finally:
                parser.exit_on_error = exits
            return parse_object(values, config, *args, **kwargs)  # raises the error if there is another problem

        parser.parse_object = parse_known
        try:
            original(self)
        finally:
            vars(parser).pop("parse_object", None)

    return parse_ckpt_path


def _class_of(config: Any) -> Any:
    model = (config.get(config.get("subcommand")) or {}).get("model") or {}
    return model.get("class_path")


def _known(values: dict[str, Any], config: Any) -> dict[str, Any]:
    """Return the hyperparameters that the model on the command line accepts."""
    (command, given) = next(iter(values.items()))
    known = config[command].get("model") or ()
    unknown = sorted(set(given["model"]) - {name for name in given["model"] if name in known})
    if unknown:
        notices.warn_once(
            "cli-checkpoint-of-other-class",
            "The checkpoint has hyperparameters that this model does not take. Check that it is the right checkpoint. "
            f"These hyperparameters are left out: {', '.join(unknown)}.",
        )
    return {command: {"model": {name: value for name, value in given["model"].items() if name not in unknown}}}


_REFUSED = r"Parsing of ckpt_path hyperparameters failed!|\bin _parse_ckpt_path\b"

PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.5.5,<=2.6.6",),
    targets=(Target("pytorch.cli:LightningCLI._parse_ckpt_path", _parse_ckpt_path),),
    upstream=Upstream(issues=(21255,)),
    impact=Impact(
        "From 2.5.5 on, LightningCLI refuses a checkpoint for --ckpt_path if its model saved a hyperparameter "
        "that the model on the command line does not accept, such as a learning rate for an inference model.",
        (
            "Parsing of ckpt_path hyperparameters failed!",
            "does not accept option 'model ... Parsing of ckpt_path hyperparameters failed!",
            "Group 'model' does not accept nested key",
        ),
        error="Parsing of ckpt_path hyperparameters failed!",
        consequences=(
            Consequence(
                ("does not accept option 'model....", "Group 'model' does not accept nested key"),
                _REFUSED,
                "the checkpoint has a hyperparameter that the model on the command line does not accept",
                is_sure=True,
                unless="_class_path",
            ),
        ),
    ),
    opt_in="users who pass a checkpoint of another module class than the one on the command line to LightningCLI",
    note="Opt-in because upstream's tests require the refusal, which also detects a wrong checkpoint. The "
    "patch omits the hyperparameters that the model does not accept, and lists them in a warning; "
    "releases before 2.5.5 omitted all of them. In subclass mode the patch only adds a warning: there "
    "LightningCLI creates the class that the checkpoint names, not the one on the command line. Other "
    "errors are unchanged. Without the patch, remove these hyperparameters from the checkpoint.",
    after=("cli-checkpoint-of-subclass", "trusted-checkpoint-cli"),
)
