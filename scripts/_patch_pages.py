"""``upstream/PATCHES.md``: the table of patches and a page for each, from the records and the diffs."""

from __future__ import annotations

from lightning_patches import patches as catalogue
from lightning_patches.cli import _records
from lightning_patches.fork import diffs as _diffs
from lightning_patches.patch import GROUPS, Patch

HEAD = """\
# The patches

Made from the records; `lightning-patches show NAME` has the same, and the diff.
"""
GROUP_WORDS = {
    "correctness": "Wrong results, and nothing says so",
    "crash": "Ends in an error",
    "hang": "Hangs, or waits for no reason",
    "security": "Security",
    "compat": "Does not work with what is installed beside it",
    "performance": "Slow for no reason",
}


def page() -> str:
    """The tables by group in Markdown, and below them what there is to say of each patch."""
    lines = [HEAD, *_changing()]
    for group in GROUPS:
        lines += [f"## {GROUP_WORDS[group]} (`{group}`)", ""]
        lines += ["| patch | what it does | releases | fixed in | number | changes |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        for patch in catalogue.all_patches():
            if patch.group == group:
                name = f"[`{patch.name}`](#{patch.name})" + (f" ({_kind(patch)})" if _kind(patch) else "")
                cells = (name, patch.title, _records.affected(patch), _records.fixed_in(patch), _links(patch))
                cells += (patch.changes_results.kind if patch.changes_results else "",)
                lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
        lines.append("")
    described = {diff.name: diff for diff in reversed(_diffs.series())}
    for patch in catalogue.all_patches():
        lines += [f'## <a id="{patch.name}"></a>{_heading(patch)}', ""]
        lines += [*_about(patch, described.get(patch.name)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _changing() -> list[str]:
    """The default patches that change results, by what changes."""
    changing = {
        patch.name: patch.changes_results.kind
        for patch in catalogue.all_patches()
        if patch.default and patch.changes_results
    }
    lines = ["## What changes results", ""]
    lines += [
        "These default patches change what a program with the bug computes, writes or ends with, even if it ends well"
    ]
    lines += ["without them. `LIGHTNING_PATCHES=same-results` applies the default set without them.", ""]
    for kind in sorted(set(changing.values())):
        names = ", ".join(f"[{name}](#{name})" for name in changing if changing[name] == kind)
        lines.append(f"- **{kind}**: {names}")
    return [*lines, ""]


def _heading(patch: Patch) -> str:
    """The name, with what people paste into a search engine and the releases that say so."""
    error = f"`` {patch.impact.error} ``" if "`" in patch.impact.error else f"`{patch.impact.error}`"
    said = f": {error}" if patch.impact.error else ""
    return f"{patch.name}{said} ({_records.affected(patch)})"


def _kind(patch: Patch) -> str:
    return "only warns" if patch.warns else "" if patch.default else "opt-in"


def _about(patch: Patch, diff: _diffs.Diff | None) -> list[str]:
    symptoms = ["", *(f"    {symptom}" for symptom in patch.impact.symptoms)] if patch.impact.symptoms else []
    upstream = f"{_links(patch)}. " if _links(patch) else ""
    if patch.fixed_in:
        upstream += f"Fixed in {patch.fixed_in}."
    elif patch.upstream.merged:
        upstream += "The official fix is merged and in no release yet."
    else:
        upstream += "No release has a fix."
    upstream += f" Our code differs: {_field(diff).rstrip('.')}." if _field(diff) else ""
    proven = f"tests/patches/{patch.name.replace('-', '_')}"
    until = f"With Lightning {patch.fixed_in}." if patch.fixed_in else "Not yet: no release has the fix."
    opt_in = f" **Opt-in,** for {patch.opt_in}: `LIGHTNING_PATCHES=default,{patch.name}`."
    points = {
        "What is done": _description(patch, diff),
        "What upstream did": upstream,
        "What it changes of the results of a program that ends well without it": _sentence(
            str(patch.changes_results or "nothing")
        ),
        "Good to know": patch.note,
        "How it is proven": f"[{proven}](../{proven}).",
        "Releases": f"{_records.affected(patch)}. **When to drop it.** {until}{'' if patch.default else opt_in}",
    }
    summary = f"**What happens without it.** {patch.impact.summary}"
    return [summary, *symptoms, "", *(f"- **{words}.** {text}" for words, text in points.items() if text)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _description(patch: Patch, diff: _diffs.Diff | None) -> str:
    text = diff.header.get("Description", [""])[0] if diff is not None else ""
    return f"{patch.title}. {' '.join(text.split())[len(patch.title) :].strip()}".strip()


def _field(diff: _diffs.Diff | None) -> str:
    return " ".join(diff.header.get("Difference", [""])[0].split()) if diff is not None else ""


def _links(patch: Patch) -> str:
    links = [f"[#{number}]({_records.UPSTREAM}/issues/{number})" for number in patch.upstream.issues]
    links += [f"[PR #{number}]({_records.UPSTREAM}/pull/{number})" for number in patch.upstream.pull_requests]
    return ", ".join(links)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
