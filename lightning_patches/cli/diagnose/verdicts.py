"""Find the releases that have the bug of a record, and the verdicts on its patch."""

from __future__ import annotations

from typing import NamedTuple

from lightning_patches.cli import _toggle
from lightning_patches.cli.diagnose.known import Record
from lightning_patches.engine import gate
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.engine.toggle import Selection
from lightning_patches.engine.verdicts import Entry
from lightning_patches.known.installed import find_installed
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

WITHOUT_THE_BUG = ("not-affected", "fixed-upstream")


class OnRelease(NamedTuple):
    """The verdict on a record in one release.

    Args:
        distribution, version: the release.
        verdict: the verdict of `lightning-patches status`; "unpatched" or "removed" for a record that is not a patch.
        reason: the complete reason.
        in_short: the reason in short, see :attr:`lightning_patches.engine.verdicts.Entry.in_short`.
    """

    distribution: str
    version: str
    verdict: str
    reason: str = ""
    in_short: str = ""

    @property
    def release(self) -> str:
        return f"{self.distribution} {self.version}"


def by_number(record: Record, distribution: str, version: str, selection: Selection) -> list[OnRelease]:
    """Return the verdict on a release by its number; an empty list if the record is not limited to releases."""
    if not record.affected:
        return []
    ranges = record.affected
    try:
        is_affected = in_ranges(version, ranges)
    except ValueError:
        return [OnRelease(distribution, version, "not-known")]
    if isinstance(record, Unpatched) and record.distributions and distribution not in record.distributions:
        is_affected = False
    if not is_affected:
        is_older = not isinstance(record, Removed) and gate.is_unknown(version, ranges)
        absent = "not-known" if is_older else "not-affected"
        return [OnRelease(distribution, version, absent)]
    if isinstance(record, Removed):
        return [OnRelease(distribution, version, "removed")]
    if not isinstance(record, Patch):
        return [OnRelease(distribution, version, "unpatched", record.why_not, record.why_not)]
    if record.name in selection.names:
        return [OnRelease(distribution, version, "pending")]
    why = f"LIGHTNING_PATCHES={selection.shown} leaves it out"
    if not record.default:
        why = f"opt-in: LIGHTNING_PATCHES=default,{record.name} adds it"
    return [OnRelease(distribution, version, "disabled", why, why)]


def installed(record: Record, namespaces: set[str], setting: _toggle.Toggle) -> list[OnRelease]:
    """Return the verdicts on the installed code. If ``namespaces`` is not empty, only on these namespaces."""
    assert setting.selection is not None
    if isinstance(record, Patch):
        return [
            OnRelease(entry.distribution, entry.version, entry.verdict, entry.reason, entry.in_short)
            for entry in _entries(setting)
            if entry.patch == record.name and (not namespaces or entry.namespace in namespaces)
        ]
    return [
        verdict
        for one in find_installed()
        if one.version and (not namespaces or one.namespace in namespaces)
        for verdict in by_number(record, one.distribution, one.version, setting.selection)
    ]


_known: dict[tuple[object, ...], list[Entry]] = {}


def _entries(setting: _toggle.Toggle) -> list[Entry]:
    """Return the verdicts on all patches. They are cached until the installed packages change, since this is slow."""
    key = (setting, *((one.distribution, one.version, *one.packages.values()) for one in find_installed()))
    if key not in _known:
        _known.clear()
        _known[key] = list(_toggle.verdicts(setting))
    return _known[key]
