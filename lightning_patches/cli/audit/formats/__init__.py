"""Output formats of ``audit``. Each writes a :class:`~lightning_patches.cli.audit.formats.report.Report`."""

from __future__ import annotations

from typing import Callable

from lightning_patches.cli.audit.formats import github, json_, markdown, sarif, text
from lightning_patches.cli.audit.formats.report import Report

FORMATS: dict[str, Callable[[Report], None]] = {
    "text": text.write,
    "json": json_.write,
    "github": github.write,
    "markdown": markdown.write,
    "sarif": sarif.write,
}
