"""Generate ``upstream/PATCHES.md``, the index of patches, and a page per subject in ``upstream/patches/``.

The text comes from the patch records and the headers of the diffs.
"""

from __future__ import annotations

import importlib
import textwrap
from typing import Iterator

from lightning_patches import patches as catalogue
from lightning_patches.fork import diffs as _diffs
from lightning_patches.known import records
from lightning_patches.patch import GROUPS, Patch

GROUP_WORDS = {
    "correctness": "Wrong results without an error",
    "crash": "Ends in an error",
    "hang": "Hangs",
    "security": "Security",
    "compat": "Fails with a current version of another package",
    "performance": "Slow",
}
INDEX_HEAD = """\
# All patches

Each row links to a description of the patch. `lightning-patches show NAME` prints the same text and the diff.
`scripts/renew` generates this page from the patch records.

The last column says which results of a program a patch changes, for programs that finish without the patch.
"""
SAME_RESULTS_HEAD = """\
## What changes results

These patches are on by default and change the results of some programs that finish without them. Select
`LIGHTNING_PATCHES=same-results` to leave them out.
"""


def subjects() -> tuple[str, ...]:
    """The folders of :mod:`lightning_patches.patches` that hold patches, by name."""
    return tuple(sorted({subject_of(patch) for patch in catalogue.all_patches()}))


def subject_of(patch: Patch) -> str:
    """The folder that holds a patch: ``"checkpoints"``."""
    return next(record.module for record in catalogue.index() if record.name == patch.name).partition(".")[0]


def link(patch: Patch) -> str:
    """The address of a patch's description, relative to ``upstream/``: ``"patches/loops.md#hook-calls"``."""
    return f"patches/{subject_of(patch)}.md#{patch.name}"


def index() -> str:
    """``upstream/PATCHES.md``: a table of patches for each group."""
    lines = [INDEX_HEAD]
    for group in GROUPS:
        members = [patch for patch in catalogue.all_patches() if patch.group == group]
        lines += [f"## {GROUP_WORDS[group]} (`{group}`)", ""]
        lines += [
            "| patch | what it does | affected releases | default | changes results |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(patch) for patch in members]
        lines.append("")
    return "\n".join([*lines, *_changing_results()])


def _row(patch: Patch) -> str:
    # The anchor keeps links to PATCHES.md#NAME working.
    name = f'<a id="{patch.name}"></a>[`{patch.name}`]({link(patch)})'
    default = "opt-in" if patch.opt_in else "only warns" if patch.warns else "yes"
    changes = patch.changes_results.kind if patch.changes_results else ""
    texts = (name, patch.title, records.affected(patch), default, changes)
    return f"| {' | '.join(' '.join(text.split()).replace('|', chr(92) + '|') for text in texts)} |"


def _changing_results() -> Iterator[str]:
    yield SAME_RESULTS_HEAD
    members: dict[str, list[str]] = {}
    for patch in catalogue.all_patches():
        if patch.default and patch.changes_results:
            members.setdefault(patch.changes_results.kind, []).append(f"[{patch.name}]({link(patch)})")
    for kind in sorted(members):
        yield f"- **{kind}**: {', '.join(members[kind])}"
    yield ""


def subject_page(subject: str) -> str:
    """``upstream/patches/<subject>.md``: the description of each patch of a subject."""
    package = importlib.import_module(f"lightning_patches.patches.{subject}")
    title = " ".join((package.__doc__ or subject).split()).rstrip(".")
    lines = [f"# {title}", "", "[All patches](../PATCHES.md)", ""]
    diffs: dict[str, list[_diffs.Diff]] = {}
    for diff in _diffs.series():
        diffs.setdefault(diff.name, []).append(diff)
    for patch in sorted(catalogue.all_patches(), key=lambda patch: patch.name):
        if subject_of(patch) == subject:
            lines += [f"## {patch.name}", "", patch.title + ".", ""]
            for heading, text in _sections(patch, diffs.get(patch.name, [])):
                lines += [f"### {heading}", "", text, ""]
    return "\n".join(lines)


def _sections(patch: Patch, diffs: list[_diffs.Diff]) -> Iterator[tuple[str, str]]:
    """Headings with their text, in the order of the page."""
    yield "What goes wrong", patch.impact.summary
    symptoms = dict.fromkeys([*([patch.impact.error] if patch.impact.error else []), *patch.impact.symptoms])
    if symptoms:
        yield "Symptoms", textwrap.indent("\n".join(symptoms), "    ")
    yield "Affected releases", f"{records.affected(patch)}."
    yield "What the patch does", " ".join(filter(None, (_opt_in(patch), _description(patch, diffs))))
    if patch.note:
        yield "Good to know", patch.note
    changes = patch.changes_results
    yield "Changes results?", f"Yes ({changes.kind}): {_sentence(changes.what)}" if changes else "No."
    fixed_in = f"When you upgrade to Lightning {patch.fixed_in} or later."
    yield "When to remove it", fixed_in if patch.fixed_in else "Keep it: no release has the fix yet."
    yield "Links", "\n".join(f"- {entry}" for entry in _links(patch, diffs))


def _opt_in(patch: Patch) -> str:
    if not patch.opt_in:
        return ""
    return f"**Opt-in**, for {patch.opt_in}: `LIGHTNING_PATCHES=default,{patch.name}`."


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."


def _description(patch: Patch, diffs: list[_diffs.Diff]) -> str:
    """The ``Description`` of the newest diff; the title where a patch has no diff."""
    text = " ".join(diffs[-1].header.get("Description", [""])[0].split()) if diffs else ""
    rest = text[len(patch.title) :].strip(" .") if text.startswith(patch.title) else text.rstrip(".")
    return f"{rest or patch.title}."


def _links(patch: Patch, diffs: list[_diffs.Diff]) -> Iterator[str]:
    for number in patch.upstream.issues:
        yield f"report: [#{number}]({records.UPSTREAM}/issues/{number})"
    for number in patch.upstream.pull_requests:
        yield f"official fix: [PR #{number}]({records.UPSTREAM}/pull/{number})"
    difference = " ".join(diffs[-1].header.get("Difference", [""])[0].split()).rstrip(".") if diffs else ""
    if difference:
        label = "difference from the official fix" if patch.upstream.pull_requests else "limits of the diff"
        yield f"{label}: {difference}."
    names = [f"[{diff.path.name}](../diffs/{diff.path.name})" for diff in diffs]
    if names:
        yield f"diff: {', '.join(names)}"
    tests = f"tests/patches/{patch.name.replace('-', '_')}"
    yield f"tests: [{tests}](../../{tests})"
