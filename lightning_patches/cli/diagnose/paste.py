"""The last line of an answer, to paste into a thread about the same problem. It contains no text of the log."""

from __future__ import annotations

import re

import lightning_patches
from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import about_match
from lightning_patches.cli.diagnose.answer import Answer, Compromised
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.known import frequent, records
from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

_WAITS_IN_GROUP = re.compile(
    r"\branks? \d[\d, to]{0,80}(?:and (?:\d{1,6}|others) )?in \w{1,60} \d{1,9} of group [^\s;]{1,64}"
)


def write(one: Answer) -> str:
    """Return a line for a thread about the same problem, or "". It contains no text of the log."""
    tool = f"lightning-patches {lightning_patches.__version__}"
    match = one.main
    if one.compromised is not None:
        return f"{alert(one.compromised)}. See GHSA-w37p-236h-pfx3 ({tool})."
    if one.unknown is not None:
        return f"{tool} does not know the first error. The later errors are its consequences."
    if match is not None and (match.cause or match.ground == "number"):
        return _about_match(match, tool)
    if one.out_of_sync:
        return f"The ranks train different models (found by the check of {tool})."
    if one.hangs:
        kind = re.split(r"[;:(]|, at |, and ", one.hangs[0].verdict)[0].strip()
        waits = _WAITS_IN_GROUP.search(one.hangs[0].verdict)
        if waits is not None:
            kind = waits.group() if waits.group().startswith(kind) else f"{kind}; {waits.group()}"
        return f"Report of the hang watch of {tool}: {_output.shown(kind)}."
    names = [match.record.name for match in one.matches if match.kind == "possible" and match.ground != "words"]
    if names:
        return f"Perhaps {' or '.join(names[:3])} ({tool}: `lightning-patches show {names[0]}`)."
    if one.logs[0].is_words or not any(log.raised for log in one.logs):
        return ""
    return f"{tool} does not know this error."


def _about_match(match: Match, tool: str) -> str:
    record = match.record
    numbers = record.upstream.issues or record.upstream.pull_requests
    page = "issues" if record.upstream.issues else "pull"
    where = f", {records.UPSTREAM}/{page}/{numbers[0]}" if numbers else ""
    if isinstance(record, Removed):
        return f"{record.title}{where} ({tool})."
    if isinstance(record, Unpatched) and not record.is_bug:
        return f"{frequent.verdict(record)}{where} ({tool})."
    fixed = f"fixed in {record.fixed_in}" if record.fixed_in else "not fixed in any release"
    patch = f"; {tool} has a patch for it, {record.name}" if isinstance(record, Patch) else ""
    error = record.impact.error or match.symptom or record.title
    return f"A known bug of {about_match.having(match) or 'Lightning'}{where}, {fixed}{patch}: {error}"


def alert(release: Compromised) -> str:
    return f"Lightning {release.version} from PyPI was compromised and runs hostile code when it is imported"
