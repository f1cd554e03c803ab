"""Where a logged value is."""

from __future__ import annotations

from typing import Any


def is_on(metric: Any, device: Any) -> bool:
    """Whether what a ``_ResultMetric`` reduces is on ``device``. Its own ``device`` cannot tell: it never changes."""
    state = vars(metric)
    value = state.get("value")
    if value is None:
        return True  # a torchmetrics metric, which comes with the first update
    if value.device != device:
        return False
    batch_size = state.get("cumulated_batch_size")
    return batch_size is None or bool(batch_size.device == device)
