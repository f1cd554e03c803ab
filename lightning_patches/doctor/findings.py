"""The result of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The most serious first."""


@dataclass(frozen=True)
class Finding:
    """A problem of the environment.

    Args:
        check: name of the check, in kebab case.
        severity: ``"error"`` if training fails, hangs or must not be started, ``"warning"`` if it may fail or hang,
            ``"note"`` for a fact that helps if there is a problem.
        what: description of the problem, with the values found here.
        why: its consequences.
        do: what to do about it.
    """

    check: str
    severity: Severity
    what: str
    why: str
    do: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
