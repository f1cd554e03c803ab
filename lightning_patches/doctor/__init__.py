"""Checks of the environment in which training starts, for ``lightning-patches doctor``.

A check is a function that reads :class:`~lightning_patches.doctor.facts.Facts` and yields findings.
:func:`~lightning_patches.doctor.machine.gather` collects the facts. Neither imports torch or Lightning into this
process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator

from lightning_patches.doctor.findings import SEVERITIES as SEVERITIES
from lightning_patches.doctor.findings import Finding as Finding

if TYPE_CHECKING:
    from lightning_patches.doctor.facts import Facts

Check = Callable[["Facts"], Iterator[Finding]]


def all_checks() -> dict[str, Check]:
    """Return the checks by name, in the order in which they run."""
    from lightning_patches.doctor import gpus, launch, packages, storage

    functions = (*packages.CHECKS, *gpus.CHECKS, *launch.CHECKS, *storage.CHECKS)
    return {function.__name__.replace("_", "-"): function for function in functions}


def run(facts: Facts) -> list[Finding]:
    """Run all checks and return their findings, the most serious first."""
    found = [finding for check in all_checks().values() for finding in check(facts)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
