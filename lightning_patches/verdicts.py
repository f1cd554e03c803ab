"""Verdicts as data. How they are shown is the command line's business."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Optional

from lightning_patches import distributions
from lightning_patches.apply import Patcher
from lightning_patches.gate import Verdict
from lightning_patches.patch import Patch
from lightning_patches.toggle import Selection


@dataclass(frozen=True)
class Entry:
    """One patch in one installed namespace.

    Args:
        patch: the patch's name.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        distribution: the installed distribution that ships it.
        version: that distribution's version.
        verdict: what the live objects say, or what will happen on import.
        reason: why.
        drop_at: first official release that makes the patch superfluous, ``None`` if there is none.
    """

    patch: str
    namespace: str
    distribution: str
    version: str
    verdict: Verdict
    reason: str
    drop_at: Optional[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def entries(patcher: Patcher, outlook: Optional[Selection] = None) -> list[Entry]:
    """The verdict on each patch of the catalogue in each installed namespace; empty if there is no Lightning.

    Args:
        patcher: the one whose work is looked at.
        outlook: what will be activated when Lightning is imported, where ``patcher`` is not active yet.
    """
    found = []
    for name in distributions.PARTS:
        namespace = distributions.find(name)
        if namespace is None:
            continue
        for patch in patcher.catalogue:
            part = _part(patch, namespace)
            decision = patcher.verdict(patch, namespace, outlook)
            found.append(
                Entry(
                    patch.name,
                    name,
                    part.distribution,
                    part.version,
                    decision.verdict,
                    decision.reason,
                    patch.fixed_in,
                )
            )
    return found


def _part(patch: Patch, namespace: distributions.Namespace) -> distributions.Part:
    for target in patch.targets:
        part = namespace.part_of(target.location)
        if part is not None:
            return part
    return next(iter(namespace.parts.values()))
