"""Generate ``upstream/PATCHES.md``, the index of patches, from the patch records."""

from __future__ import annotations

from typing import Iterator

from lightning_patches import patches as catalogue
from lightning_patches.known import figures, records
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

Each row links to the patch, whose record says what goes wrong without it. `lightning-patches show NAME` prints the
record and the diff. `scripts/renew` generates this page.

A `default` patch is a fix that leaves working programs unchanged. A `warning` fixes nothing, and is on by default, too.
An `opt-in` patch is a fix that you select with `LIGHTNING_PATCHES`.

The last column says which results of a program a patch changes, for programs that finish without the patch.
"""
SAME_RESULTS_HEAD = """\
## What changes results

These patches are on by default and change the results of some programs that finish without them. Select
`LIGHTNING_PATCHES=same-results` to leave them out.
"""
SHOWN = ("1.9.5", "2.0.0", "2.2.5", "2.3.3", "2.5.1", "2.6.6")
"""The releases whose known bugs are counted."""


def link(patch: Patch) -> str:
    """The address of a patch's module, relative to ``upstream/``."""
    module = next(record.module for record in catalogue.index() if record.name == patch.name)
    return f"../{module.replace('.', '/')}.py"


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
