"""Verdicts on patches, as data for the command line and for ``report()``."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any, Iterable, List, Optional, get_args

from lightning_patches.engine import attributes, distributions, gate, hooks, references
from lightning_patches.engine.gate import Decision, Verdict
from lightning_patches.engine.patcher import Patcher
from lightning_patches.engine.toggle import Selection
from lightning_patches.patch import Patch, Target


@dataclass(frozen=True)
class Entry:
    """One patch in one installed namespace.

    Args:
        patch: the patch's name.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        distribution: the installed distribution that ships it.
        version: that distribution's version.
        verdict: the verdict, from the live objects or for a future import.
        reason: the reason.
        drop_at: first official release with the fix, ``None`` if there is none.
        counted: True if the patch counts as a fix, see :attr:`lightning_patches.patch.Patch.is_counted`.
        modules: the modules that the patch changes, without the namespace: ``"pytorch.loops.fit_loop"``.
        condition: a further condition of a pending patch besides the import.
    """

    patch: str
    namespace: str
    distribution: str
    version: str
    verdict: Verdict
    reason: str
    drop_at: Optional[str]
    counted: bool = True
    modules: list[str] = field(default_factory=list)
    condition: str = ""

    @property
    def in_short(self) -> str:
        """The reason in short: for a pending patch, only the condition."""
        return self.condition if self.verdict == "pending" else self.reason

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Report(List[Entry]):
    """A list of verdicts that a notebook or REPL shows as a table: first applied patches, then others with the
    reason."""

    def __repr__(self) -> str:
        columns = min(shutil.get_terminal_size().columns, 100)
        lines = []
        for label, found in by_release(self).items():
            lines.append(f"{label}: {fixes_in_words(found)}")
            width = max(len(entry.patch) for entry in found)
            for each in get_args(Verdict):
                for entry in (entry for entry in found if entry.verdict == each):
                    begin = f"  {entry.patch:{width}}  {each:14}  "
                    lines.append(_hanging(entry.in_short, begin, columns))
        return "\n".join(lines) or "[]"

    def _repr_html_(self) -> str:
        """Show, for a notebook, the patches of each changed package of Lightning, colored by verdict."""
        lines = [
            "<style>.lightning-patch {display: inline-block; padding: 0 .4em; border-radius: .3em; color: #fff}</style>"
        ]
        for label, found in by_release(self).items():
            packages: dict[str, list[Entry]] = {}
            for entry in (entry for verdict in _COLORS for entry in found if entry.verdict == verdict):
                for package in dict.fromkeys(module.rpartition(".")[0] or module for module in entry.modules):
                    packages.setdefault(package, []).append(entry)
            legend = [_badge(each, each) for each in _COLORS if any(entry.verdict == each for entry in found)]
            lines += [f"<b>{label}: {fixes_in_words(found)}</b>", *legend, "<table>"]
            for package in sorted(packages):
                badges = " ".join(_badge(one.patch, one.verdict, one.reason) for one in packages[package])
                lines.append(f"<tr><td>{package}</td><td style='text-align: left'>{badges}</td></tr>")
            lines.append("</table>")
        return "\n".join(lines)


_COLORS = {
    "applied": "#1a7f37",
    "pending": "#57606a",
    "disabled": "#9a6700",
    "not-supported": "#bc4c00",
    "drifted": "#cf222e",
    "failed": "#cf222e",
}
"""Colors of the verdicts in a notebook. Patches with other verdicts are not shown."""


def _badge(text: str, verdict: str, why: str = "") -> str:
    from html import escape

    title = escape(f"{verdict}: {why}" if why else verdict, quote=True)
    return f'<span class="lightning-patch" style="background: {_COLORS[verdict]}" title="{title}">{text}</span>'


def _hanging(text: str, begin: str, columns: int) -> str:
    filled = textwrap.fill(
        text,
        max(columns, len(begin) + 24),
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled or begin.rstrip()


def by_release(found: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group verdicts by distribution and version: ``"lightning 2.2.5"``."""
    releases: dict[str, list[Entry]] = {}
    for entry in found:
        releases.setdefault(f"{entry.distribution} {entry.version}", []).append(entry)
    return releases


def count_fixes(found: Iterable[Entry]) -> int:
    """Return the number of applied or pending fixes, which the line at start, ``status`` and ``audit`` print."""
    return sum(entry.counted and entry.verdict in ("pending", "applied") for entry in found)


def fixes_in_words(found: Iterable[Entry]) -> str:
    """``"1 fix"``, ``"2 fixes"``."""
    count = count_fixes(found)
    return f"{count} fix{'' if count == 1 else 'es'}"


def entries(patcher: Patcher, pending_selection: Optional[Selection] = None) -> Report:
    """Return the verdict on each patch in each installed namespace; empty without Lightning.

    Args:
        patcher: the patcher.
        pending_selection: the selection that will be activated when Lightning is imported, if ``patcher`` is not active
            yet.
    """
    found = Report()
    copies = _copies_of_originals(patcher)
    for name in distributions.PARTS:
        namespace = distributions.find(name)
        if namespace is None:
            continue
        for patch in (record.whole for record in patcher.catalogue):
            part = _part(patch, namespace)
            decision = verdict(patcher, patch, namespace, pending_selection)
            reason = decision.reason
            if decision.verdict == "applied" and (name, patch.name) in copies:
                places = ", ".join(copies[name, patch.name])
                reason += f", but {places} still references the original: activate the patches earlier"
            found.append(
                Entry(
                    patch.name,
                    name,
                    part.distribution,
                    part.version,
                    decision.verdict,
                    reason,
                    patch.fixed_in,
                    patch.is_counted,
                    list(dict.fromkeys(target.module for target in gate.targets_in(patch, namespace))),
                    decision.condition,
                )
            )
    return found


def verdict(
    patcher: Patcher, patch: Patch, namespace: distributions.Namespace, pending_selection: Optional[Selection] = None
) -> Decision:
    """Return the current state of a patch in a namespace. The live objects take precedence.

    Args:
        patcher: the patcher.
        patch: a patch of its catalogue.
        namespace: the installed namespace.
        pending_selection: the selection that will be activated when Lightning is imported, if ``patcher`` is not active
            yet.
    """
    applied, missing, waiting = _target_states(patch, namespace)
    selection = patcher.selection or pending_selection
    if selection is not None and patch.name not in selection.names:
        if applied:
            places = ", ".join(target.location for target in applied)
            return Decision("applied", f"still applied, although not selected: other code keeps it in {places}")
        decision = patcher.decision(patch, namespace)
        not_selected = Decision("disabled", f"not selected by {selection.shown or 'the default set'}")
        return not_selected if decision.verdict == "pending" else decision
    if applied and not missing and not waiting:
        if patch.probe is not None and not patch.probe():
            return Decision("not-affected", "not needed: a probe finds that this torch does not have the bug")
        wrappers = sorted({_wrapper(patcher, namespace, target) for target in applied} - {""})
        return Decision(
            "applied", f"in place, inside a wrapper of other code: {', '.join(wrappers)}" if wrappers else "in place"
        )
    decision = patcher.decision(patch, namespace)
    if decision.verdict != "pending":
        return decision
    if missing:
        return _why_missing(patcher, patch, *missing[0])
    if not applied and not waiting:
        if not patcher.active:
            return Decision("disabled", "not activated in this process")
        return Decision("applied", "nothing to replace: Lightning defines its target only with an optional package")
    modules = ", ".join(sorted({target.module for target in waiting}))
    if patcher.active and not hooks.is_watching():
        removed = f"other code has removed our finder from sys.meta_path; to patch {modules}, call"
        return Decision("failed", f"{removed} `lightning_patches.activate()`")
    conditions = [f"{len(applied)} of {len(applied) + len(waiting)} targets are patched"] if applied else []
    conditions += [f"needs {', '.join(map(str, patch.needs))}, which is checked then"] if patch.needs else []
    conditions += ["acts only if a probe finds the bug in torch"] if patch.probe is not None else []
    condition = "; ".join(conditions)
    return Decision("pending", "; ".join([f"applies when {modules} is imported", *conditions]), condition)


def _target_states(
    patch: Patch, namespace: distributions.Namespace
) -> tuple[list[Target], list[tuple[Target, ModuleType]], list[Target]]:
    """Return the targets to which the patch is applied, those that lack it, and those that are not imported yet.

    Optional targets that Lightning has not defined are in none of the lists.
    """
    applied, missing, waiting = [], [], []
    for target in gate.targets_in(patch, namespace):
        module = sys.modules.get(distributions.module_name(namespace.name, target.module))
        if module is not None and attributes.is_applied_to(patch, module, target):
            applied.append(target)
        elif module is None or hooks.is_being_imported(module):
            waiting.append(target)
        elif not attributes.is_optional_and_missing(module, target):
            missing.append((target, module))
    return applied, missing, waiting


def _wrapper(patcher: Patcher, namespace: distributions.Namespace, target: Target) -> str:
    module = sys.modules.get(distributions.module_name(namespace.name, target.module))
    return patcher.swaps.wrapper_around(module, target) if module is not None else ""


def _why_missing(patcher: Patcher, patch: Patch, target: Target, module: ModuleType) -> Decision:
    if not patcher.active:
        return Decision("disabled", "not activated in this process")
    if patcher.swaps.was_applied(patch, module, target):
        return Decision("failed", f"other code replaced {target.location} after it was patched")
    return Decision(
        "failed", f"{target.location} was imported without our hook; call `lightning_patches.activate()` to try again"
    )


def _copies_of_originals(patcher: Patcher) -> dict[tuple[str, str], list[str]]:
    """Return the places that still reference an original, by namespace and patch name."""
    originals = patcher.swaps.originals()
    found: dict[tuple[str, str], list[str]] = {}
    for key, places in references.find({key: function for key, (function, _) in originals.items()}).items():
        _, patched = originals[key]
        for patch, _ in patched.layers:
            found.setdefault((patched.namespace, patch.name), []).extend(places)
    return found


def _part(patch: Patch, namespace: distributions.Namespace) -> distributions.Part:
    for target in patch.targets:
        part = namespace.part_of(target.location)
        if part is not None:
            return part
    return next(iter(namespace.parts.values()))
