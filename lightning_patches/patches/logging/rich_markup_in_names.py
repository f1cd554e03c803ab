"""Tables of rich show names of modules and metrics whole, and `[...]` in them as text."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Any, Callable, Iterator

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, name_and_title


def _summarize(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return with_whole_names(original)


def _print_results(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def print_results(results: list[Any], stage: str) -> None:
        loop = upstream_module(namespace, "pytorch.loops.evaluation_loop")
        if not (loop._RICH_AVAILABLE and print_table(results, stage)):
            original(results, stage)

    return print_results


def with_whole_names(summarize: Callable[..., None]) -> Callable[..., None]:
    """Return ``RichModelSummary.summarize`` with cells that are not taken for markup and not cut."""

    def whole(summary_data: list[Any], *args: Any, **kwargs: Any) -> None:
        from rich import get_console

        console, needed = get_console(), 1 + sum(3 + max(map(len, [name, *cells])) for name, cells in summary_data)
        texts = [text for _, cells in summary_data for text in cells if isinstance(text, str)]
        if needed > console.width or not all(map(_is_plain, texts)):
            summary_data = [(name, [*map(_literal, cells)]) for name, cells in summary_data]
        with _room(console, needed):
            summarize(summary_data, *args, **kwargs)

    return whole


def print_table(results: list[Any], stage: str) -> bool:
    """Print the results if Lightning's table would cut a name or take a part of it for markup.

    Args:
        results: metrics of each DataLoader; dictionaries may be nested.
        stage: "test" or "validate".

    Returns:
        False if Lightning can print them.
    """
    from rich import get_console
    from rich.table import Table

    columns = [dict(_leaves(metrics)) for metrics in results]
    names = sorted({name for column in columns for name in column})
    console, longest = get_console(), max(map(len, names), default=0)
    longest_word = max((len(word) for name in names for word in name.split()), default=0)
    terminal = shutil.get_terminal_size(fallback=(120, 30)).columns or 120
    width = int(min(max(longest, len(f"DataLoader {len(results) - 1}"), 25), terminal / 2))
    number = max(1, min(len(results), int((terminal - width) / width)))
    excess = (number + 1) * (width + 3) + 1 - console.width  # rich takes it from all columns
    if longest_word <= width - max(0, round(excess / (number + 1))) and all(map(_is_plain, names)):
        return False
    for start in range(0, len(columns), number):
        shown = columns[start : start + number]
        table = Table()
        table.add_column(f"{stage} Metric".capitalize(), justify="center", style="cyan", min_width=25)
        for index in range(start, start + len(shown)):
            table.add_column(f"DataLoader {index}", justify="center", style="magenta", min_width=25)
        for name in names:
            table.add_row(_literal(name), *(_literal(column.get(name, " ")) for column in shown))
        widest = [max(25, *map(len, column.values())) for column in shown]
        with _room(console, 1 + sum(3 + width for width in (max(25, longest), *widest))):
            console.print(table)
    return True


@contextlib.contextmanager
def _room(console: Any, needed: int) -> Iterator[None]:
    """Widen the console to ``needed`` columns, unless it is a terminal or has a width that the program has set."""
    width = console._width
    is_default = width is None or f"{width}" == os.environ.get("COLUMNS")
    if is_default and not console.is_terminal and needed > console.width:
        console.width = needed
    try:
        yield
    finally:
        console._width = width


def _leaves(metrics: Any, *path: str) -> Iterator[tuple[str, str]]:
    """The metrics of nested dictionaries, with joined names, and their values as text."""
    for key, value in metrics.items():
        keys = (*path, key if path else key.split("/dataloader_idx_")[0])
        if isinstance(value, dict):
            yield from _leaves(value, *keys)
        else:
            if hasattr(value, "numel"):
                value = value.item() if value.numel() == 1 else value.tolist()
            yield ":".join(keys), f"{value}"


def _is_plain(text: str) -> bool:
    from rich.errors import MarkupError
    from rich.markup import render

    try:
        return bool(render(text).plain == text)
    except MarkupError:
        return False


def _literal(text: Any) -> Any:
    """A cell that rich folds rather than cuts."""
    from rich.text import Text

    return Text(text, no_wrap=False, overflow="fold") if isinstance(text, str) else text


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.callbacks.rich_model_summary:RichModelSummary.summarize", _summarize),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop._print_results", _print_results),
    ),
    impact=Impact(
        "Where rich is installed, it takes `[...]` in names of metrics and modules for markup: test() and validate() "
        "end in an error if a name has `[/m]`, and other parts in brackets are missing in the tables. Long names are "
        "cut.",
        (
            "MarkupError: closing tag '...' at position ... doesn't match any open tag",
            "the name of a metric is cut off in the table that trainer.test prints",
        ),
        error="rich.errors.MarkupError: closing tag '...' at position ... doesn't match any open tag",
        frames=("/loops/evaluation_loop.py", "/callbacks/"),
    ),
    note="Equivalent to names without brackets whose words fit: such tables are printed as on stock. In a terminal, "
    "longer words are folded; elsewhere, such as in log files, the table is as wide as its names.",
)
