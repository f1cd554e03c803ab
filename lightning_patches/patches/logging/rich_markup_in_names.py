"""A name with `[/...]` in it does not end a run where rich is installed."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target


def _summarize(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def summarize(summary_data: list[Any], *args: Any, **kwargs: Any) -> None:
        try:
            original(summary_data, *args, **kwargs)
        except Exception as error:
            if not _is_markup_error(error):
                raise
            original([(column, [*map(_escaped, cells)]) for column, cells in summary_data], *args, **kwargs)

    return summarize


def _print_results(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def print_results(results: list[Any], stage: str) -> None:
        try:
            original(results, stage)
        except Exception as error:
            if not _is_markup_error(error):
                raise
            original([_with_escaped_names(metrics) for metrics in results], stage)

    return print_results


def _is_markup_error(error: Exception) -> bool:
    return (type(error).__module__, type(error).__name__) == ("rich.errors", "MarkupError")


def _with_escaped_names(metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        _escaped(name): _with_escaped_names(value) if isinstance(value, dict) else value
        for name, value in metrics.items()
    }


def _escaped(text: Any) -> Any:
    from rich.markup import escape

    return escape(text) if isinstance(text, str) else text


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.callbacks.rich_model_summary:RichModelSummary.summarize", _summarize),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop._print_results", _print_results),
    ),
    impact=Impact(
        "Where rich is installed, it takes `[...]` in names of metrics and modules for markup: test(), validate() and "
        "the model summary end in an error if a name has a closing tag, such as `[/s]`.",
        ("MarkupError: closing tag '...' at position ... doesn't match any open tag",),
        error="rich.errors.MarkupError: closing tag '...' at position ... doesn't match any open tag",
        frames=("/loops/evaluation_loop.py", "/callbacks/"),
    ),
    note="Only tables that rich cannot print are changed: all of their names are text. In other tables `[...]` is "
    "markup, as without the patch, and long names are cut. Without the patch, use `rich.markup.escape(name)`.",
)
