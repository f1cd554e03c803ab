"""Lightning does not advise to install litlogger and litmodels if they are installed."""

from __future__ import annotations

import logging
import sys
from typing import Any, Callable

from lightning_patches.engine.functions import is_traced
from lightning_patches.patch import Impact, Patch, Target


def _build(package: str) -> Callable[..., Any]:
    def build(original: Callable[..., None], namespace: str) -> Callable[..., None]:
        def is_other(record: logging.LogRecord) -> bool:
            return f"try installing [{package.partition('>')[0]}]" not in str(record.msg)

        traced = is_traced()

        def without_tip(*args: Any, **kwargs: Any) -> None:
            from lightning_utilities.core.imports import RequirementCache

            log = sys.modules["lightning_utilities.core.rank_zero"].log
            if not traced() and RequirementCache(package):  # torch.compile fails if a package is not installed
                log.addFilter(is_other)
            try:
                original(*args, **kwargs)
            finally:
                log.removeFilter(is_other)

        return without_tip

    return build


_CONNECTORS = "pytorch.trainer.connectors"
PATCH = Patch(
    added="0.3.0",
    group="compat",
    affected=(">=2.6.1,<=2.6.6",),
    targets=(
        Target(
            f"{_CONNECTORS}.logger_connector.logger_connector:_LoggerConnector.configure_logger",
            _build("litlogger>=0.1.0"),
        ),
        Target(
            f"{_CONNECTORS}.callback_connector:_CallbackConnector._maybe_show_litmodels_tip", _build("litmodels>=0.1.7")
        ),
    ),
    impact=Impact(
        "Each Trainer prints tips to install litlogger and litmodels, also where they are installed.",
        ("try installing [litlogger]", "try installing [litmodels]"),
    ),
    note="Equivalent to a Trainer with a LitLogger that has log_model, which prints no tips. Where the packages are "
    "not installed, the tips are printed as on stock.",
)
