"""Checks of the environment in which a training is started, for ``lightning-patches doctor``.

A check is a function of :class:`~lightning_patches.doctor.facts.Facts` that yields findings. It looks at nothing but
the facts it is given; :func:`~lightning_patches.doctor.machine.gather` looks at the machine. Neither imports torch or
Lightning into this process.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Literal

if TYPE_CHECKING:
    from lightning_patches.doctor.facts import Facts

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something about the environment that can cost a user time.

    Args:
        check: name of the check, kebab-case.
        severity: ``"error"``: training will fail or hang, or must not be started; ``"warning"``: it may;
            ``"note"``: worth knowing when something is wrong.
        what: what is so here, with the values that were found.
        why: why it matters.
        do: what to do.
    """

    check: str
    severity: Severity
    what: str
    why: str
    do: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


Check = Callable[["Facts"], Iterator[Finding]]


def all_checks() -> dict[str, Check]:
    """Name -> check, in the order in which they are shown."""
    from lightning_patches.doctor import gpus, launch, packages, storage

    functions = (*packages.CHECKS, *gpus.CHECKS, *launch.CHECKS, *storage.CHECKS)
    return {function.__name__.replace("_", "-"): function for function in functions}


def run(facts: Facts) -> list[Finding]:
    """What all checks find, the gravest first."""
    found = [finding for check in all_checks().values() for finding in check(facts)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
