"""RichProgressBar works with rich 14.1 and later."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_RICH = "pytorch.callbacks.progress.rich_progress"


def _init_progress(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def init_progress(self: Any, trainer: Any) -> None:
        # The original creates a console, gets it from get_console(), and clears its live display, although a new
        # console has none. Since rich 14.1 the displays of a console are a stack, and clearing an empty stack raises an
        # error.
        module = upstream_module(namespace, _RICH)
        get_console = vars(module)["get_console"]

        def with_something_to_forget() -> Any:
            console = get_console()
            displays = getattr(console, "_live_stack", None)
            if displays is not None and not displays:
                displays.append(None)
            return console

        setattr(module, "get_console", with_something_to_forget)  # noqa: B010
        try:
            original(self, trainer)
        finally:
            setattr(module, "get_console", get_console)  # noqa: B010

    return init_progress


PATCH = Patch(
    group="compat",
    affected=(">=1.8.0,<2.5.3",),
    only_with=("rich>=14.1",),
    targets=(Target(f"{_RICH}:RichProgressBar._init_progress", _init_progress),),
    upstream=Upstream(pull_requests=(21016,), commit="9e6b3d632f", fixed_in="2.5.3"),
    impact=Impact(
        "Every fit, validate, test or predict with a RichProgressBar fails before its first batch.",
        ("IndexError: pop from empty list",),
        error="IndexError: pop from empty list",
    ),
)
