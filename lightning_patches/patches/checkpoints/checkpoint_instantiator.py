"""load_from_checkpoint does not run code that a checkpoint names."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches import trust
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints._subclasses import is_imported_subclass

_SAVING = "pytorch.core.saving"


def _load_state(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state(cls: type, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        new = {name: value for name, value in kwargs.items() if name != "strict"}
        _check(cls, {**_loaded_arguments(cls, checkpoint, upstream_module(namespace, _SAVING)), **new})
        return original(cls, checkpoint, *args, **kwargs)

    return load_state


def _loaded_arguments(cls: Any, checkpoint: dict[str, Any], saving: Any) -> dict[str, Any]:
    """Return the arguments for ``cls`` that the original will read from the checkpoint."""
    key = cls.CHECKPOINT_HYPER_PARAMS_KEY
    if key not in checkpoint:
        return {}
    loaded: dict[str, Any] = {}
    if issubclass(cls, saving.pl.LightningModule):
        for past_key in saving.CHECKPOINT_PAST_HPARAMS_KEYS:
            loaded.update(checkpoint.get(past_key, {}))
    loaded.update(checkpoint.get(key, {}))
    converted = saving._convert_loaded_hparams(loaded, checkpoint.get(cls.CHECKPOINT_HYPER_PARAMS_TYPE))
    name = checkpoint.get(cls.CHECKPOINT_HYPER_PARAMS_NAME)
    special = {part for part in saving.parse_class_init_keys(cls) if part}
    if name and name in inspect.signature(cls.__init__).parameters and name not in special:
        return {name: converted}
    arguments: dict[str, Any] = {}
    arguments.update(converted)
    return arguments


def _check(cls: type, arguments: dict[str, Any]) -> None:
    """Refuse names that the script does not trust. Imports nothing and calls nothing.

    Raises:
        ValueError: the checkpoint names a function or a class that is not trusted.
    """
    instantiator = arguments.get("_instantiator")
    if instantiator is None:
        return
    if not trust.is_trusted_instantiator(instantiator):
        raise ValueError(
            f"The checkpoint asks for {instantiator!r} to create {cls.__name__}, but checkpoints may not name this"
            " function. Nothing was imported or called. If you trust this file and this function, call"
            f" lightning_patches.trust_instantiator({instantiator!r}) before you load it."
        )
    class_path = arguments.get("_class_path")
    if class_path is not None and not is_imported_subclass(class_path, cls):
        raise ValueError(
            f"The checkpoint asks for the class {class_path!r} instead of {cls.__name__}, but it is not an imported"
            " subclass. Nothing was imported or called. If you trust this file and this class, import the class before"
            " you load the file."
        )


PATCH = Patch(
    group="security",
    changes_results=Effect("how it ends", "loading raises an error if a checkpoint names code to call"),
    affected=(">=2.3.0,<2.6.6",),
    targets=(Target(f"{_SAVING}:_load_state", _load_state),),
    upstream=Upstream(
        issues=(21822, 21913),
        pull_requests=(21832, 21914),
        commit="d710d68951",
        fixed_in="2.6.6",
        tests=(
            "tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_blocks_untrusted_instantiator",
            "tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_allows_lightning_instantiator",
        ),
    ),
    impact=Impact(
        "Loading someone else's checkpoint with load_from_checkpoint can run code that the file names, even with "
        "weights_only=True.",
        ("CVE-2026-58659", "GHSA-qqmf-gpg7-g8gw", "PYSEC-2026-3624", "PYSEC-2026-3967"),
    ),
    note="A checkpoint that names your own function is refused until the script calls "
    "lightning_patches.trust_instantiator(...) with its dotted path. A class that a LightningCLI "
    "checkpoint names must be imported before loading, as from 2.6.6 on. The patch does not check pickled "
    "objects: load untrusted files with weights_only=True.",
)
