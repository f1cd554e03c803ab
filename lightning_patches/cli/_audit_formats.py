"""Output formats of ``audit`` for other tools."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Sequence

import lightning_patches
from lightning_patches.known import records

Audited = Dict[str, Any]


def github(audited: list[Audited], trouble: Sequence[str] = ()) -> str:
    """Format annotations for GitHub Actions.

    errors for unfixed bugs, warnings for bugs with an opt-in patch, notices.
    """
    lines = [f"::warning title=not read::{_message(text)}" for text in trouble]
    for one in audited:
        place = f"file={_property(one['file'])},line={one['line']}," if one["file"] else ""
        if not one["known"]:
            lines.append(f"::warning {place}title=unknown release::{_message(one['headline'])}")
        for bug in one["bugs"]:
            kind = {"yes": "notice", "opt-in": "warning", "no": "error"}[bug["mended"]]
            lines.append(f"::{kind} {place}title={_property(bug['name'])}::{_message(_sentence(one, bug))}")
    return "\n".join(lines)


def markdown(audited: list[Audited], trouble: Sequence[str] = ()) -> str:
    """A heading and a table for each release."""
    blocks = [f"Not read: {text}." for text in trouble]
    for one in audited:
        lines = [f"**{one['headline']}**", f"Do: {one['do']}", *(f"Note: {note}." for note in one["notes"])]
        if one["bugs"]:
            lines += ["", "| bug | group | mended | fixed in | harm |", "| --- | --- | --- | --- | --- |"]
        for bug in one["bugs"]:
            cells = (f"`{bug['name']}`", bug["group"], _covered(bug), bug["fixed_in"] or "never", bug["harm"])
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) or "There is no Lightning here: nothing to audit."


def sarif(audited: list[Audited], trouble: Sequence[str] = ()) -> str:
    """Format a SARIF 2.1.0 document: a rule for each bug, and a result for each bug of each release.

    An unknown release gets a notification, since no result does not mean that it has no bugs.
    """
    rules: dict[str, Any] = {}
    results = []
    notifications = [_notification("error", f"{text}.") for text in trouble]
    if not audited and not trouble:
        notifications.append(_notification("note", "There is no Lightning here: nothing to audit."))
    for one in audited:
        if not one["known"]:
            notifications.append(_notification("error", one["headline"], one))
        notifications += [_notification("note", f"{note}.", one) for note in one["notes"]]
        for bug in one["bugs"]:
            numbers = bug["pull_requests"] or bug["issues"]
            rules.setdefault(
                bug["name"],
                {
                    "id": bug["name"],
                    "shortDescription": {"text": bug["title"]},
                    "fullDescription": {"text": bug["harm"]},
                    "helpUri": f"{records.UPSTREAM}/issues/{numbers[0]}" if numbers else records.UPSTREAM,
                    "properties": {"tags": [bug["group"]]},
                },
            )
            level = {"yes": "note", "opt-in": "warning", "no": "error"}[bug["mended"]]
            result = {"ruleId": bug["name"], "level": level, "message": {"text": _sentence(one, bug)}}
            results.append({**result, **_locations(one)})
    driver = {
        "name": "lightning-patches",
        "version": lightning_patches.__version__,
        "rules": list(rules.values()),
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    is_whole = not trouble and all(one["known"] for one in audited)
    invocation = {"executionSuccessful": is_whole, "toolExecutionNotifications": notifications}
    runs = [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}]
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": runs}, indent=2)


def _notification(level: str, text: str, one: Optional[Audited] = None) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, **(_locations(one) if one is not None else {})}


def _locations(one: Audited) -> dict[str, Any]:
    if not one["file"]:
        return {}
    place = {"artifactLocation": {"uri": one["file"]}, "region": {"startLine": max(one["line"], 1)}}
    return {"locations": [{"physicalLocation": place}]}


def _covered(bug: dict[str, Any]) -> str:
    return "NO" if bug["mended"] == "no" else str(bug["mended"])


def _sentence(one: Audited, bug: dict[str, Any]) -> str:
    mended = "Mended by the patches" if one["has_patches"] else "Would be mended by the patches"
    how = mended if bug["covered"] else bug["reason"][:1].upper() + bug["reason"][1:]
    return f"{one['distribution']} {one['version']}: {bug['harm']} {how}."


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


Format = Callable[[List[Audited], Sequence[str]], str]
FORMATS: dict[str, Format] = {
    "github": github,
    "markdown": markdown,
    "sarif": sarif,
}
