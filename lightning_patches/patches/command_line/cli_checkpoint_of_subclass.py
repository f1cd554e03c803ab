"""LightningCLI in subclass mode accepts a checkpoint with hyperparameters."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints._subclasses import is_imported_subclass


def _parse_ckpt_path(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def parse_ckpt_path(self: Any) -> None:
        parser = self.parser
        parse_object = parser.parse_object

        def parse_with_class(values: Any, *args: Any, **kwargs: Any) -> Any:
            (command, given) = next(iter(values.items()))
            if "_class_path" in given["model"]:
                values = {command: {"model": _of_subclass(given["model"], self._model_class)}}
            return parse_object(values, *args, **kwargs)

        parser.parse_object = parse_with_class
        try:
            original(self)
        finally:
            vars(parser).pop("parse_object", None)

    return parse_ckpt_path


def _of_subclass(hparams: dict[str, Any], base: type) -> dict[str, Any]:
    """Convert hyperparameters that LightningCLI saved to the form that its parser needs in subclass mode.

    Raises:
        ValueError: the class has not been imported.
    """
    values = dict(hparams)
    path = values.pop("_class_path")
    if not is_imported_subclass(path, base):
        raise ValueError(
            f"The checkpoint is of the class {path!r}, and that is not a subclass of {base.__name__} that has been"
            " imported. If you know this file and this class, import the class before LightningCLI is called."
        )
    return {"class_path": path, "dict_kwargs": values}


PATCH = Patch(
    group="crash",
    affected=(">=2.5.5,<2.6.0",),
    targets=(Target("pytorch.cli:LightningCLI._parse_ckpt_path", _parse_ckpt_path),),
    upstream=Upstream(
        pull_requests=(21246,),
        commit="dfbee800e0",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/test_cli.py::test_lightning_cli_ckpt_path_argument_hparams_subclass_mode",),
    ),
    impact=Impact(
        "With LightningCLI in subclass mode, test, predict and a resumed fit fail at the start if --ckpt_path is a "
        "checkpoint whose model saved its hyperparameters.",
        (
            "Parsing of ckpt_path hyperparameters failed!",
            "'_class_path' is not accepted ... Parsing of ckpt_path hyperparameters failed!",
        ),
        error="Parsing of ckpt_path hyperparameters failed!",
        consequences=(
            Consequence(
                ("'_class_path' is not accepted", "does not accept nested key '_class_path'"),
                r"Parsing of ckpt_path hyperparameters failed!|\bin _parse_ckpt_path\b",
                "the checkpoint names its class, which the parser does not accept",
                is_sure=True,
            ),
        ),
    ),
    note="The class must be imported beforehand, as load_from_checkpoint requires from 2.6.6 on. The official "
    "fix imports any module that the checkpoint names. Checkpoints without a class, and LightningCLI "
    "without subclass mode, are unchanged.",
    after=("checkpoint-class-imports",),
    around=("cli-checkpoint-of-other-class", "trusted-checkpoint-cli"),
)
