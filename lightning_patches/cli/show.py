"""Show everything about a patch: its effect and reason, the official fix, the diff, and when to drop it. For bugs,
features, frequent errors, upstream fixes and reports that have no patch, show the known facts and advice.

With --json, one object: schema (1), others (entries without a patch: name, numbers, title, verdict, do), and patches, a
record for each patch with this name or number: name, title, group, default, added (version of this package),
affected (version specifiers), affected_releases, fixed_in (null for none), merged (fixed on upstream's master, in no
release yet), issues, pull_requests, commit, tests, summary, symptoms, error, targets (location, adds, since, before),
witnesses, note, warns_of, changes_results (kind, what; null for none), for_whom, signs, and diffs (path in the source
archive, file here, and text). Always empty: further_than_upstream, equivalent_to, relied_on, relied_on_tests.

exit status: 0 if the name or number is known, else 2.
"""

from __future__ import annotations

import argparse
from typing import Any

from lightning_patches.cli import _arguments, _output, _toggle
from lightning_patches.cli._exit_status import OK, UsageError
from lightning_patches.known import lookup, records
from lightning_patches.patch import Patch, Target

HELP = "show all about a patch, an issue or a pull request"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    key = parser.add_argument(
        "key", metavar="NAME|NUMBER", help="the name of a patch, or the number or URL of an issue or pull request"
    )
    _arguments.complete(key)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--no-diff", action="store_true", help="leave the diff out")


def run(args: argparse.Namespace) -> int:
    found = lookup.find(args.key)
    if not found:
        raise UsageError(lookup.unknown(args.key))
    patches = [one for one in found if isinstance(one, Patch)]
    others = [lookup.in_words(one) for one in found if not isinstance(one, Patch)]
    if args.json:
        described = [{**records.as_dict(patch), "diffs": _diffs(patch, args.no_diff)} for patch in patches]
        _output.write_json({"patches": described, "others": others})
        return OK
    pages = [_page(patch, not args.no_diff) for patch in patches] + [_short_page(one) for one in others]
    for index, page in enumerate(pages):
        _output.write(("\n" if index else "") + page)
    return OK


def _short_page(entry: dict[str, Any]) -> str:
    head = entry["name"] or ", ".join(f"#{number}" for number in entry["numbers"])
    links = [f"{records.UPSTREAM}/issues/{number}" for number in entry["numbers"]]
    lines = [entry["title"], f"Do: {entry['do']}" if entry["do"] else "", entry["verdict"], *links]
    return "\n".join([head, *(_output.paragraph(line, "  ") for line in lines if line)])


def _diffs(patch: Patch, left_out: bool) -> list[dict[str, str]]:
    if left_out:
        return []
    return [
        {"path": f"upstream/diffs/{path.name}", "file": str(path), "text": path.read_text("utf-8")}
        for path in records.diffs(patch)
    ]


def _page(patch: Patch, with_diff: bool) -> str:
    upstream = patch.upstream
    links = [f"issue: {records.UPSTREAM}/issues/{number}" for number in upstream.issues]
    links += [f"fix: {records.UPSTREAM}/pull/{number}" for number in upstream.pull_requests]
    if upstream.commit:
        links.append(f"commit: {records.UPSTREAM}/commit/{upstream.commit}")
    links += [f"test: {test}" for test in upstream.tests]
    if not upstream.pull_requests and patch.fixed_in is None:
        links.append("There is no official fix.")
    links += [f"proposed: {records.UPSTREAM}/pull/{number}" for number in upstream.proposed]
    sections = [
        ("Without the patch", [patch.impact.summary]),
        ("Symptoms", _symptoms(patch)),
        ("Affected releases", [f"{records.affected(patch)} ({' or '.join(patch.affected)})"]),
        ("When to drop it", [_when_to_drop(patch)]),
        ("Official fix", links),
        ("Changes results?", [str(patch.changes_results or "No.")]),
        ("Good to know", [patch.note]),
        ("Replaced code", [_target(target) for target in patch.targets]),
        ("How to enable it", [_how_to_enable(patch)]),
        ("In this environment", _verdicts_here(patch)),
    ]
    blocks = [f"{patch.name}\n{_output.paragraph(patch.title)}"]
    for title, lines in sections:
        text = "\n".join(_output.paragraph(line, "  ") for line in lines if line)
        if text:
            blocks.append(f"{title}\n{text}")
    if with_diff:
        blocks.append(f"Diff\n{_diff_text(patch)}")
    return "\n\n".join(blocks)


def _symptoms(patch: Patch) -> list[str]:
    """Return the error and the symptoms that it does not contain."""
    error = patch.impact.error
    return [error, *(symptom for symptom in patch.impact.symptoms if symptom.lower() not in error.lower())]


def _when_to_drop(patch: Patch) -> str:
    if patch.upstream.merged:
        return "With the next release of Lightning. The official fix is merged, but not released yet."
    if patch.fixed_in is None:
        return "No release has the fix yet."
    return f"With Lightning {patch.fixed_in} or newer, which has the official fix. There, the patch does nothing."


def _how_to_enable(patch: Patch) -> str:
    if patch.default:
        return (
            f"In the default set: `import lightning_patches` applies it; LIGHTNING_PATCHES=-{patch.name} leaves it out."
        )
    return f"It is opt-in, for {patch.opt_in}: LIGHTNING_PATCHES=default,{patch.name} adds it to the default set."


def _verdicts_here(patch: Patch) -> list[str]:
    """Return the patch's verdict for each installed Lightning, with the current LIGHTNING_PATCHES."""
    setting = _toggle.read_toggle()
    if setting.error is not None:
        return [setting.error]
    found = [entry for entry in _toggle.verdicts(setting) if entry.patch == patch.name]
    return [f"{e.distribution} {e.version}: {_toggle.in_words(e.verdict, e.in_short)}" for e in found] or [
        "There is no Lightning in this environment."
    ]


def _target(target: Target) -> str:
    remarks = ["added by the patch"] if target.adds else []
    remarks += [f"since {target.since}"] if target.since else []
    remarks += [f"before {target.before}"] if target.before else []
    return target.location + (f" ({', '.join(remarks)})" if remarks else "")


def _diff_text(patch: Patch) -> str:
    paths = records.diffs(patch)
    if not paths:
        return _output.paragraph("The patch has no diff.", "  ")
    return "\n".join(f"  {path}\n\n{path.read_text('utf-8').rstrip()}\n" for path in paths).rstrip("\n")
