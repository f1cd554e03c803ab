"""Find out on which device the state of a logged metric is."""

from typing import Any


def is_on(metric: Any, device: Any) -> bool:
    """True if the state of a ``_ResultMetric`` is on ``device``.

    Its ``device`` attribute is not used, because it never changes.
    """
    state = vars(metric)
    value = state.get("value")
    if value is None:
        return True  # for a torchmetrics metric, the value is set at the first update
    if value.device != device:
        return False
    batch_size = state.get("cumulated_batch_size")
    return batch_size is None or bool(batch_size.device == device)
