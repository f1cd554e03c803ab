"""A SARIF 2.1.0 document: a rule for each bug, and a result for each bug of each release.

An unknown release gets a notification, since without results it would seem to have no bugs.
"""

from __future__ import annotations

import json
from typing import Any, Optional

import lightning_patches
from lightning_patches.cli.audit.formats.report import NOTHING, Report
from lightning_patches.known import records

_LEVELS = {"yes": "note", "opt-in": "warning", "no": "error"}


def write(report: Report) -> None:
    rules: dict[str, Any] = {}
    results = []
    notifications = [_notification("error", f"{text}.") for text in report.not_read]
    if not report.audited and not report.not_read:
        notifications.append(_notification("note", NOTHING))
    for one in report.releases:
        if not one["known"]:
            notifications.append(_notification("error", one["headline"], one))
        notifications += [_notification("note", f"{note}.", one) for note in one["notes"]]
        for bug in one["bugs"]:
            rules.setdefault(bug["name"], _rule(bug))
            message = {"text": _in_words(one, bug)}
            result = {"ruleId": bug["name"], "level": _LEVELS[bug["mended"]], "message": message}
            results.append({**result, **_locations(one)})
    driver = {"name": "lightning-patches", "version": lightning_patches.__version__, "rules": list(rules.values())}
    is_whole = not report.not_read and all(one.known for one in report.audited)
    invocation = {"executionSuccessful": is_whole, "toolExecutionNotifications": notifications}
    runs = [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}]
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    report.write(json.dumps({"$schema": schema, "version": "2.1.0", "runs": runs}, indent=2))


def _rule(bug: dict[str, Any]) -> dict[str, Any]:
    numbers = bug["pull_requests"] or bug["issues"]
    return {
        "id": bug["name"],
        "shortDescription": {"text": bug["title"]},
        "fullDescription": {"text": bug["harm"]},
        "helpUri": f"{records.UPSTREAM}/issues/{numbers[0]}" if numbers else records.UPSTREAM,
        "properties": {"tags": [bug["group"]]},
    }


def _notification(level: str, text: str, one: Optional[dict[str, Any]] = None) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, **(_locations(one) if one is not None else {})}


def _locations(one: dict[str, Any]) -> dict[str, Any]:
    if not one["file"]:
        return {}
    place = {"artifactLocation": {"uri": one["file"]}, "region": {"startLine": max(one["line"], 1)}}
    return {"locations": [{"physicalLocation": place}]}


def _in_words(one: dict[str, Any], bug: dict[str, Any]) -> str:
    """Return two sentences: the effect of a bug, and if it is fixed."""
    fixed = "Fixed by the patches" if one["has_patches"] else "Would be fixed by the patches"
    how = fixed if bug["covered"] else bug["reason"][:1].upper() + bug["reason"][1:]
    return f"{one['distribution']} {one['version']}: {bug['harm']} {how}."
