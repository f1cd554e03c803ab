"""A checkpoint's file name can contain two metrics whose names begin alike."""

from __future__ import annotations

import re
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def _format_checkpoint_name(original: Callable[..., str], namespace: str) -> Callable[..., str]:
    def format_checkpoint_name(
        cls: type, filename: Any, metrics: dict[str, Any], prefix: str = "", auto_insert_metric_name: bool = True
    ) -> str:
        names = re.findall(r"\{([^:}]*)", filename or "")
        # The original replaces one name after another. If a shorter name comes first, it also replaces a part of the
        # longer one.
        if any(later != name and later.startswith(name) for i, name in enumerate(names) for later in names[i:]):
            import torch

            values = {**dict.fromkeys(names, torch.tensor(0)), **metrics}
            inserted = r"\1={0[\1]" if auto_insert_metric_name else r"{0[\1]"
            filename = re.sub(r"\{([^:}]*)", inserted, filename).format(values)
        return original(cls, filename, metrics, prefix, auto_insert_metric_name)

    return format_checkpoint_name


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.0.3",),
    targets=(Target(f"{_CALLBACK}._format_checkpoint_name", _format_checkpoint_name),),
    upstream=Upstream(
        pull_requests=(17610,),
        commit="34069303af",
        fixed_in="2.0.3",
        tests=(
            "tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_model_checkpoint_format_checkpoint_name",
        ),
    ),
    impact=Impact(
        "ModelCheckpoint(filename='{epoch}-{epoch_loss:.2f}') ends the training at the first save, because the "
        "shorter name is also replaced within the longer one.",
        ("ValueError: Only '.' or '[' may follow ']' in format field specifier",),
        error="ValueError: Only '.' or '[' may follow ']' in format field specifier",
    ),
)
