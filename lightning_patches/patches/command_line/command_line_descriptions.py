"""The command line of Lightning 1.6.0 and 1.6.1 works with a current jsonargparse."""

import sys
from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _get_short_description(original: Callable[..., Optional[str]], namespace: str) -> Callable[..., Optional[str]]:
    def _get_short_description(component: object) -> Optional[str]:
        module: Any = sys.modules[original.__module__]
        jsonargparses = module.import_docstring_parse

        def parse_itself(*args: Any) -> Any:
            found = jsonargparses(*args)  # older versions of jsonargparse return a function, current ones a package
            return getattr(found, "parse", found)

        module.import_docstring_parse = parse_itself
        try:
            return original(component)
        finally:
            module.import_docstring_parse = jsonargparses

    return _get_short_description


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=1.6.0,<1.6.2",),
    targets=(Target("pytorch.utilities.cli:_get_short_description", _get_short_description),),
    upstream=Upstream(fixed_in="1.6.2"),
    impact=Impact(
        "LightningCLI fails before it reads its arguments.",
        ("TypeError: 'module' object is not callable",),
        error="TypeError: 'module' object is not callable",
    ),
)
