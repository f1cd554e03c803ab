"""Generate ``upstream/PATCHES.md``, the index of patches, and a page per subject in ``upstream/patches/``.

The text comes from the patch records and the headers of the diffs.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Iterator

from lightning_patches import patches as catalogue
from lightning_patches.fork import diffs as _diffs
from lightning_patches.known import figures, records
from lightning_patches.patch import GROUPS, Patch

TESTS = Path(__file__).resolve().parents[1] / "tests" / "patches"
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

A `default` patch is a fix that leaves working programs unchanged. A `warning` fixes nothing, and is on by default, too.
An `opt-in` patch is a fix that you select with `LIGHTNING_PATCHES`.

The last column says which results of a program a patch changes, for programs that finish without the patch.
"""
NOT_FIXED = "No release has the fix yet, so keep the patch."
SAME_RESULTS_HEAD = """\
## What changes results

These patches are on by default and change the results of some programs that finish without them. Select
`LIGHTNING_PATCHES=same-results` to leave them out.
"""


SHOWN = ("1.9.5", "2.0.0", "2.2.5", "2.3.3", "2.5.1", "2.6.6")
"""The releases whose known bugs are counted."""


def subjects() -> tuple[str, ...]:
    """The folders of :mod:`lightning_patches.patches` that hold patches, by name."""
    return tuple(sorted({subject_of(patch) for patch in catalogue.all_patches()}))


def subject_of(patch: Patch) -> str:
    """The folder that holds a patch: ``"checkpoints"``."""
    return next(record.module for record in catalogue.index() if record.name == patch.name).split(".")[2]


def link(patch: Patch) -> str:
    """The address of a patch's description, relative to ``upstream/``: ``"patches/loops.md#hook-calls"``."""
    return f"patches/{subject_of(patch)}.md#{patch.name}"


def index() -> str:
    """``upstream/PATCHES.md``: a table of patches for each group."""
    lines = [INDEX_HEAD, *_counts(), ""]
    for group in GROUPS:
        members = [patch for patch in catalogue.all_patches() if patch.group == group]
        lines += [f"## {GROUP_WORDS[group]} (`{group}`)", ""]
        lines += [
            "| patch | what it does | affected releases | kind | changes results |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(patch) for patch in members]
        lines.append("")
    return "\n".join([*lines, *_changing_results()])


def _counts() -> Iterator[str]:
    yield "| Lightning | known bugs | fixed by default | opt-in | not fixed |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for version in SHOWN:
        found = figures.of_release("lightning", version)
        yield f"| {version} | {found.known} | {found.default} | {found.opt_in} | {found.unfixed} |"


def _row(patch: Patch) -> str:
    # The anchor keeps links to PATCHES.md#NAME working.
    name = f'<a id="{patch.name}"></a>[`{patch.name}`]({link(patch)})'
    changes = patch.changes_results.kind if patch.changes_results else ""
    texts = (name, patch.title, records.affected(patch), patch.kind, changes)
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
    diffs = {diff.name: diff for diff in _diffs.series()}
    for patch in sorted(catalogue.all_patches(), key=lambda patch: patch.name):
        if subject_of(patch) == subject:
            lines += [f"## {patch.name}", "", f"{patch.title}.", ""]
            lines += [f"**Without the patch:** {patch.impact.summary}", ""]
            if symptoms := _symptoms(patch):
                lines += [*(f"    {symptom}" for symptom in symptoms), ""]
            lines += [*(f"- **{label}** {text}" for label, text in _facts(patch, diffs.get(patch.name))), ""]
    return "\n".join(lines)


def _symptoms(patch: Patch) -> list[str]:
    """The error and the symptoms, without those that another one contains."""
    texts = list(dict.fromkeys([*([patch.impact.error] if patch.impact.error else []), *patch.impact.symptoms]))
    return [text for text in texts if not any(text != other and text in other for other in texts)]


def _facts(patch: Patch, diff: _diffs.Diff | None) -> Iterator[tuple[str, str]]:
    """Labels with their text, in the order of the page."""
    removal = f"When you upgrade to {patch.fixed_in} or later, remove the patch." if patch.fixed_in else NOT_FIXED
    yield "Affected releases:", f"{records.affected(patch)}. {removal}"
    if text := " ".join(filter(None, (_description(patch, diff), _opt_in(patch)))):
        yield "What the patch does:", text
    if patch.note:
        yield "Good to know:", patch.note
    changes = patch.changes_results
    yield "Changes results?", f"Yes ({changes.kind}): {_sentence(changes.what)}" if changes else "No."
    difference = " ".join(diff.header.get("Difference", [""])[0].split()) if diff is not None else ""
    if difference:
        label = "Difference from the official fix:" if patch.upstream.pull_requests else "Limits of the diff:"
        yield label, _sentence(difference)
    yield "Links:", ", ".join(_links(patch, diff)) + "."


def _opt_in(patch: Patch) -> str:
    return f"Opt-in, for {patch.opt_in}: `LIGHTNING_PATCHES=default,{patch.name}`." if patch.opt_in else ""


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."


def _description(patch: Patch, diff: _diffs.Diff | None) -> str:
    """The diff's ``Description`` without the patch's title; "" if nothing is left."""
    text = " ".join(diff.header["Description"][0].split()) if diff is not None else ""
    rest = text[len(patch.title) :].strip(" .") if text.startswith(patch.title) else text.rstrip(".")
    return _sentence(rest) if rest else ""


def _links(patch: Patch, diff: _diffs.Diff | None) -> Iterator[str]:
    for number in patch.upstream.issues:
        yield f"report [#{number}]({records.UPSTREAM}/issues/{number})"
    for number in patch.upstream.pull_requests:
        yield f"official fix [PR #{number}]({records.UPSTREAM}/pull/{number})"
    if diff is not None:
        yield f"diff [{diff.path.name}](../diffs/{diff.path.name})"
    name = patch.name.replace("-", "_")
    for tests in [path for own in (name, f"test_{name}") for path in TESTS.glob(f"*/{own}.py")][:1]:
        yield f"[tests](../../tests/patches/{tests.parent.name}/{tests.name})"
