"""Device of a logged value."""

from __future__ import annotations

from typing import Any


def is_on(metric: Any, device: Any) -> bool:
    """True if the state of a ``_ResultMetric`` is on ``device``. Its ``device`` attribute never changes."""
    state = vars(metric)
    value = state.get("value")
    if value is None:
        return True  # a torchmetrics metric, which is set at the first update
    if value.device != device:
        return False
    batch_size = state.get("cumulated_batch_size")
    return batch_size is None or bool(batch_size.device == device)
