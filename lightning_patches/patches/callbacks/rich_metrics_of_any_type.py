"""RichProgressBar shows metrics that are not numbers."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from lightning_patches.patch import Impact, Patch, Target, Upstream


class _Column:
    """The attributes of a column that the original reads."""

    def __init__(self, metrics: dict[str, Any], metrics_format: str) -> None:
        self._metrics = metrics
        self._metrics_format = metrics_format


def _generate_metrics_texts(original: Callable[..., Iterator[str]], namespace: str) -> Callable[..., Iterator[str]]:
    def _generate_metrics_texts(self: Any) -> Iterator[str]:
        for name, value in self._metrics.items():
            try:
                text = next(iter(original(_Column({name: value}, self._metrics_format))))
            except (TypeError, ValueError):  # not a number
                text = f"{name}: {value!s}"
            yield text

    return _generate_metrics_texts


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<2.6.0",),
    targets=(
        Target(
            "pytorch.callbacks.progress.rich_progress:MetricsTextColumn._generate_metrics_texts",
            _generate_metrics_texts,
            optional=True,
        ),
    ),
    upstream=Upstream(pull_requests=(20896,), commit="2f5c4b677c", fixed_in="2.6.0"),
    impact=Impact(
        "With a RichProgressBar whose get_metrics returns None, a list, a dict or a tensor with several values, "
        "training ends after its first batch. TQDMProgressBar shows these values.",
        (
            "unsupported format string passed to NoneType.__format__",
            "unsupported format string passed to list.__format__",
            "unsupported format string passed to dict.__format__",
            "unsupported format string passed to Tensor.__format__",
        ),
        error="TypeError: unsupported format string passed to NoneType.__format__",
        frames=("_generate_metrics_texts",),
    ),
    note="Numbers are formatted as without the patch. 2.6.0 also formats integers with decimals.",
)
