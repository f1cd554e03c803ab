"""Create all sentences of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import lightning_patches
from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import about, about_match, advice, candidates, facts
from lightning_patches.cli.diagnose.answer import Answer, Compromised, Text
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.known import frequent, records
from lightning_patches.known.installed import find_installed
from lightning_patches.known.unpatched import ADVICE, Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

_WAITS_IN_GROUP = re.compile(
    r"\branks? \d[\d, to]{0,80}(?:and (?:\d{1,6}|others) )?in \w{1,60} \d{1,9} of group [^\s;]{1,64}"
)
_OTHERS = (("follows", "It hid an earlier error"), ("found", "Also found"), ("possible", "Perhaps also"))


def write(one: Answer) -> Text:
    """Return the sentences of an answer."""
    text = about.write(one)
    more = [*text.more, *_other_matches(one), *_same_error(one), *_left_out(one.logs)]
    if isinstance(one.subject, Match) and one.subject.ground == "words":
        more = list(dict.fromkeys(more))
    written = _written_by(one) if not one.hangs else ""
    more = [written, *more] if written else more
    verdict, do = _about_a_hang(one, text) if one.is_about_hang else (text.verdict, text.do)
    if one.compromised is None:
        return Text(verdict, do, text.why, more)
    line, is_installed = one.compromised.line, one.compromised.is_installed
    where = f" (line {line} of the log)" if line else " (it is installed here)" if is_installed else ""
    alert = f"{_alert(one.compromised)}{where}."
    return Text(alert, f"{ADVICE[0].upper()}{ADVICE[1:]}.", text.why, [f"Also: {verdict} {do}", *more])


def _about_a_hang(one: Answer, text: Text) -> tuple[str, str]:
    """Return the verdict and the advice for a user who describes a hang."""
    verdict = f"{text.verdict} If several ranks hang, the hang watch shows where."
    do = f"If several ranks hang: {about.hang_watch(one.logs)}"
    return verdict if one.main is not None else "A program that hangs.", do


def _written_by(one: Answer) -> str:
    """Return a sentence with the Lightning that wrote the log, and with the installed one if it differs."""
    known = one.facts
    if not known.releases or one.required:
        return ""
    how = "its traceback fits no other release" if known.by == "frames" else "the log names it"
    written = f"Written by {known.distribution or 'lightning'} {facts.in_words(known.releases)} ({how})."
    here = [found for found in find_installed() if not known.distribution or found.distribution == known.distribution]
    others = [found for found in here if found.version not in known.releases]
    return f"{written} Installed here is {others[0].distribution} {others[0].version}." if others else written


def _other_matches(one: Answer) -> list[str]:
    main = one.main
    error = main.error if main is not None else None
    rest = [match for match in one.matches if match is not main]
    rest = [match for match in rest if error is None or match.error is not error or isinstance(match.record, Patch)]
    if main is not None and main.ground == "words":
        patches = [match.record for match in rest if isinstance(match.record, Patch) and not match.ruled_out]
        return [f"{patch.name}: {patch.impact.summary}" for patch in patches]
    if main is not None and main.ground == "script":
        return [f"Line {match.line}, {match.record.name}: {advice.write(match)}." for match in rest]
    names = {kind: dict.fromkeys(match.record.name for match in rest if match.kind == kind) for kind, _ in _OTHERS}
    found = [f"{words}: {', '.join(names[kind])}." for kind, words in _OTHERS if names[kind]]
    ruled_out: dict[str, list[str]] = {}
    for match in rest:
        if match.ruled_out:
            ruled_out.setdefault(match.excluded or "the release does not have it", []).append(match.record.name)
    return found + [f"Ruled out, since {why}: {', '.join(dict.fromkeys(names))}." for why, names in ruled_out.items()]


def _same_error(one: Answer) -> list[str]:
    """Return a sentence with bugs that end in the same error, but that are not among the matches."""
    shown = {match.record.name for match in one.matches}
    names = [name for log in one.logs for name in candidates.with_same_error(log) if name not in shown]
    which = f"{'Bugs' if len(names) > 1 else 'A bug'} with the same last line: {', '.join(dict.fromkeys(names))}"
    return [f"{which}. The whole traceback (the `File ...` lines) is needed to tell them apart."] if names else []


def _left_out(logs: Sequence[Log]) -> list[str]:
    found: dict[str, list[str]] = {}
    for log in logs:
        for sentence in log.left_out:
            found.setdefault(sentence, []).append(_output.printable(log.name))
    if len(logs) == 1:
        return list(found)
    return [f"{names[0] if len(names) == 1 else f'{len(names)} logs'}: {text}" for text, names in found.items()]


def to_paste(one: Answer) -> str:
    """Return a line for a thread about the same problem, or "". It contains no text of the log."""
    tool = f"lightning-patches {lightning_patches.__version__}"
    match = one.main
    if one.compromised is not None:
        return f"{_alert(one.compromised)}. See GHSA-w37p-236h-pfx3 ({tool})."
    if one.unknown is not None:
        return f"{tool} does not know the first error. The later errors are its consequences."
    if match is not None and (match.cause or match.ground == "number"):
        return _pasted_match(match, tool)
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


def _pasted_match(match: Match, tool: str) -> str:
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


def _alert(release: Compromised) -> str:
    return f"Lightning {release.version} from PyPI was compromised and runs hostile code when it is imported"
