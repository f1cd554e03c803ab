"""A hyperparameter that YAML cannot represent is omitted from hparams.yaml."""

from argparse import Namespace
from enum import Enum
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _save_hparams_to_yaml(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hparams_to_yaml(config_yaml: Any, hparams: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(config_yaml, hparams, *args, **kwargs)
        except ValueError:
            values = vars(hparams) if isinstance(hparams, Namespace) else hparams
            refused = {name: type(value).__name__ for name, value in values.items() if _is_refused(value)}
            if not refused:
                raise
            for name, kind in refused.items():
                notices.warn_once(f"hparams {name} {kind}", f"Skipping {name!r}, a {kind}: YAML cannot represent it.")
            rest = {name: value for name, value in values.items() if name not in refused}
            original(config_yaml, rest, *args, **kwargs)
            if type(values) is dict:  # the original copies other types
                values.update(rest, **refused)

    return save_hparams_to_yaml


def _is_refused(value: Any) -> bool:
    """True if YAML raises a ValueError for the value."""
    import yaml  # type: ignore[import-untyped]

    try:
        yaml.dump(value.name if isinstance(value, Enum) else value)
    except ValueError:
        return True
    except TypeError:  # the original handles it
        pass
    return False


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.3.0",),
    targets=(Target("pytorch.core.saving:save_hparams_to_yaml", _save_hparams_to_yaml),),
    upstream=Upstream(
        pull_requests=(19804,),
        commit="5fa32d95e3",
        fixed_in="2.3.0",
        tests=("tests/tests_pytorch/models/test_hparams.py::test_save_hparams_to_yaml_warning",),
    ),
    impact=Impact(
        "If save_hyperparameters() saves an object that YAML rejects with a ValueError, such as a dtype or a "
        "torchmetrics metric, training fails before its first batch.",
        ("ValueError: dictionary update sequence element #0 has length 1; 2 is required",),
        error="ValueError: dictionary update sequence element #0 has length 1; 2 is required",
    ),
)
