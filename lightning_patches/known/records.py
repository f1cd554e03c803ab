"""Fields of a patch's record as text and as JSON, for all commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional, Union

from lightning_patches.engine import fingerprints
from lightning_patches.engine.hunks import DIFFS
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Patch

UPSTREAM = "https://github.com/Lightning-AI/pytorch-lightning"


def affected(patch: Union[Patch, Unpatched]) -> str:
    """Return the affected releases as text: ``"2.1.0 to 2.3.3"``."""
    known, releases = _every_release(), affected_releases(patch)
    spans: list[list[str]] = []
    for index, release in enumerate(known):
        if release not in releases:
            continue
        if spans and index and spans[-1][-1] == known[index - 1]:
            spans[-1] = [spans[-1][0], release]
        else:
            spans.append([release])
    return ", ".join(" to ".join(span) for span in spans) or " or ".join(patch.affected)


def affected_releases(patch: Union[Patch, Unpatched]) -> list[str]:
    """Return all affected releases, oldest first."""
    return [release for release in _every_release() if in_ranges(release, patch.affected)]


def _every_release() -> tuple[str, ...]:
    return (*fingerprints.older_releases(), *fingerprints.known_releases())


def fixed_in(record: Union[Patch, Unpatched]) -> str:
    return record.fixed_in or ("merged, unreleased" if record.upstream.merged else "never")


def numbers(patch: Patch) -> str:
    """``"#19813, PR #19814"``"""
    issues = [f"#{number}" for number in patch.upstream.issues]
    return ", ".join([*issues, *(f"PR #{number}" for number in patch.upstream.pull_requests)])


def changes(patch: Patch) -> Optional[dict[str, str]]:
    """Return the changed results for JSON, ``{"kind": "files", "what": "last.ckpt"}``; ``None`` if there are none."""
    return patch.changes_results._asdict() if patch.changes_results else None


def title(patch: Patch) -> str:
    """Return the title of a patch, with the kind of results that it changes."""
    return f"{patch.title} (changes {patch.changes_results.kind})" if patch.changes_results else patch.title


def diffs(patch: Patch) -> list[Path]:
    """Return the patch's diff, if it has one."""
    path = DIFFS / f"{patch.name}.patch"
    return [path] if path.is_file() else []


def as_dict(patch: Patch) -> dict[str, Any]:
    """Return the record for JSON. Later versions may add keys, and keep the old ones.

    ``fixed_in`` is ``None`` if no release has the fix, also if the fix is ``merged``.
    """
    record = {
        "name": patch.name,
        "title": patch.title,
        "group": patch.group,
        "kind": patch.kind,
        "default": patch.default,
        "added": patch.added,
        "affected": patch.affected,
        "affected_releases": affected_releases(patch),
        "fixed_in": patch.fixed_in,
        "merged": patch.upstream.merged,
        "issues": patch.upstream.issues,
        "pull_requests": patch.upstream.pull_requests,
        "commit": patch.upstream.commit,
        "tests": patch.upstream.tests,
        "summary": patch.impact.summary,
        "symptoms": patch.impact.symptoms,
        "error": patch.impact.error,
        "targets": [
            {"location": t.location, "adds": t.adds, "since": t.since, "before": t.before} for t in patch.targets
        ],
        "witnesses": patch.witnesses,
        "note": patch.note,
        "warns_of": patch.name.partition("warn-")[2],
        "changes_results": changes(patch),
        "for_whom": patch.opt_in,
        "signs": patch.signs,
        # empty since 0.2.0: the note has these facts
        "further_than_upstream": "",
        "equivalent_to": "",
        "relied_on": "",
        "relied_on_tests": [],
    }
    plain: dict[str, Any] = json.loads(json.dumps(record))
    return plain
