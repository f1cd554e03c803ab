"""Show this environment, and for each installed Lightning, which patches will be applied, and why others will not.

Nothing is imported: versions and code are read from the files that Python would import. The result holds for a program
that is started here with the current LIGHTNING_PATCHES.

With --json, one object (later versions may add keys):
  schema             1
  lightning_patches  version of this package
  python             {version, executable}
  toggle             {variable, value (null: not set), error (null: none), strict, quiet, selected: [patch names]}
  distributions      [{distribution, version, namespace, packages: {package: path}, forbidden, note}]
  patches            [{patch, namespace, distribution, version, verdict, reason, drop_at, title, group, default,
                     counted, modules, condition, changes_results (kind, what)}] for the requested
                     patches; empty if LIGHTNING_PATCHES is invalid
  suggested          [{patch, for_whom, signs}], opt-in patches that are not selected, and that the environment or the
                     script seems to need
  script             findings of `doctor` about the import of lightning_patches in the script of --script,
                     [{check, severity, what, why, do}]
  summary            {namespace: {verdict: count}}
  fixes              {release: count}, without patches that only warn and patches that only some torch releases need
  figures            {release: {known, default, opt_in, unmended}}, counts of known bugs, as in `audit`
  ok                 the exit status is 0
A verdict is one of: pending (will be applied on import), disabled (LIGHTNING_PATCHES does not select it), not-affected,
not-known (the release was not checked for the bug), fixed-upstream, not-supported (another package lacks a feature that
the patch needs), drifted (the code is not that of a known release, and is left unchanged), failed, applied.

exit status: 0 all selected patches will be applied; 1 a selected patch has drifted or failed, or a compromised release
is installed; 2 LIGHTNING_PATCHES or the command line names something that does not exist.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from typing import Any, Optional

import lightning_patches
from lightning_patches import patches as catalogue
from lightning_patches.cli import _arguments, _files, _output, autostart
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, USAGE
from lightning_patches.cli._toggle import VERDICTS, Toggle, read_toggle, verdicts
from lightning_patches.doctor import Finding, packages
from lightning_patches.doctor.facts import Facts
from lightning_patches.doctor.script import PATCHED, USED, Place, look_through, parse
from lightning_patches.engine import gate, toggle
from lightning_patches.engine.verdicts import Entry, by_release, count_fixes, fixes_in_words
from lightning_patches.known import figures, records
from lightning_patches.known.installed import Installed, find_installed
from lightning_patches.patch import Patch

HELP = "show what the patches do in this environment, and why"

_PATCHED_PROGRAMS = "programs that `import lightning_patches` or that `lightning-patches run` starts"
_STYLES = {
    "pending": "green",
    "applied": "green",
    "not-supported": "yellow",
    "drifted": "bold red",
    "failed": "bold red",
    "disabled": "yellow",
    "fixed-upstream": "dim",
    "not-affected": "dim",
    "not-known": "dim",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_argument("name", nargs="*", metavar="NAME", help="only these patches, by name or number")
    _arguments.complete(names)
    _arguments.add_group(parser)
    parser.add_argument(
        "--verdict", choices=VERDICTS, metavar="VERDICT", help=f"only those with a verdict: {', '.join(VERDICTS)}"
    )
    parser.add_argument(
        "--script",
        metavar="FILE",
        help="check where this training script imports lightning_patches, and suggest opt-in patches for it; the "
        "script is read, not run",
    )
    parser.add_argument(
        "--all", action="store_true", help="list the verdict on each patch; otherwise, only those that can't be applied"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, with --all")


def run(args: argparse.Namespace) -> int:
    for key in args.name:
        _arguments.find_patches(key)
    installed = find_installed()
    setting = read_toggle()
    found = verdicts(setting)
    names, places = _read_script(args.script) if args.script is not None else (set(), ())
    suggested = _suggested(found, names)
    status = _exit_status(setting, installed, found)
    if args.json:
        chosen = _shown(found, argparse.Namespace(**{**vars(args), "all": True}))
        _output.write_json(_document(installed, setting, chosen, suggested, _script_findings(places), status))
    else:
        advice = _what_to_do(installed, setting, found, places)
        _output.write(_output.styled(_output.paragraph(f"Do: {advice}"), "bold"))
        _output.write()
        _write_environment(installed, _script_findings(places))
        _output.write()
        _output.write(_output.paragraph(_toggle_text(setting)))
        counts = figures.of_installed()
        for release, of_release in by_release(found).items():
            known = _in_words(release, counts.get(release))
            _output.write(_output.paragraph(f"{release}: {_summary(of_release)}. {known}".rstrip()))
        shown = _shown(found, args)
        if shown:
            _write_patches(shown)
        elif found and _is_selective(args):
            _output.write("No patch matches.")
        for patch, signs in suggested.items():
            reason = f"You may need it because of {', '.join(signs)}."
            _output.write(_output.paragraph(f"{patch.name} is opt-in, for {patch.opt_in}. {reason}"))
        if len(shown) < len(found) and not _is_selective(args):
            _output.write(_output.paragraph("`lightning-patches status --all` lists the verdict on each patch."))
    return status


def _exit_status(setting: Toggle, installed: list[Installed], found: list[Entry]) -> int:
    if setting.error is not None:
        return USAGE
    selected = setting.selection.names if setting.selection is not None else frozenset()
    refused = any(entry.verdict in ("drifted", "failed") and entry.patch in selected for entry in found)
    return NOT_APPLIED if refused or any(one.forbidden for one in installed) else OK


def _suggested(found: list[Entry], names_in_script: set[str]) -> dict[Patch, list[str]]:
    """Return the opt-in patches that are not selected but seem needed, with the names that are a sign of the need."""
    present = {name for name, value in os.environ.items() if value} | names_in_script
    patches = {patch.name: patch for patch in catalogue.all_patches()}
    suggested: dict[Patch, list[str]] = {}
    for name in dict.fromkeys(entry.patch for entry in found if entry.verdict == "disabled"):
        names = [[*sign.split()] for sign in patches[name].signs if not patches[name].default]
        signs = [[one for one in sign if one[0] != "-"] for sign in names if _matches(sign, present)]
        if signs:
            suggested[patches[name]] = list(dict.fromkeys(one for sign in signs for one in sign))
    return suggested


def _matches(sign: list[str], present: set[str]) -> bool:
    return all((name[1:] not in present) if name[0] == "-" else (name in present) for name in sign)


def _read_script(script: str) -> tuple[set[str], tuple[Place, ...]]:
    """Return the names that a script imports, calls, passes and defines, and its places that matter to `doctor`."""
    source = _files.read(script, _files.MAX_SCRIPT)
    with _files.parsing(script):
        nodes = list(ast.walk(parse(source)))
        places = tuple(look_through(source))
    return {
        str(vars(node)[field]) for node in nodes for field in ("id", "attr", "arg", "name") if field in vars(node)
    }, places


def _script_findings(places: tuple[Place, ...]) -> list[Finding]:
    """Return the findings about the import of ``lightning_patches`` in a script."""
    facts = Facts(environment=dict(os.environ), autostart=autostart.is_enabled(), script=places)
    return list(packages.patches_import(facts))


def _document(
    installed: list[Installed],
    setting: Toggle,
    found: list[Entry],
    suggested: dict[Patch, list[str]],
    script_findings: list[Finding],
    status: int,
) -> dict[str, Any]:
    patches = {patch.name: patch for patch in catalogue.all_patches()}
    selection = setting.selection
    return {
        "lightning_patches": lightning_patches.__version__,
        "python": {"version": _python_version(), "executable": sys.executable},
        "toggle": {
            "variable": toggle.VARIABLE,
            "value": setting.value,
            "error": setting.error,
            "strict": selection is not None and selection.strict,
            "quiet": selection is not None and selection.quiet,
            "selected": sorted(selection.names) if selection is not None else [],
        },
        "distributions": [vars(one) for one in installed],
        "patches": [
            {
                **entry.as_dict(),
                "title": patches[entry.patch].title,
                "group": patches[entry.patch].group,
                "default": patches[entry.patch].default,
                "changes_results": records.changes(patches[entry.patch]),
            }
            for entry in found
        ],
        "suggested": [
            {"patch": patch.name, "for_whom": patch.opt_in, "signs": signs} for patch, signs in suggested.items()
        ],
        "script": [finding.as_dict() for finding in script_findings],
        "summary": _counts(found),
        "fixes": {release: count_fixes(of_release) for release, of_release in by_release(found).items()},
        "figures": {release: known.as_dict() for release, known in figures.of_installed().items()},
        "ok": status == OK,
    }


def _counts(found: list[Entry]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for entry in found:
        of_namespace = counts.setdefault(entry.namespace, dict.fromkeys(VERDICTS, 0))
        of_namespace[entry.verdict] += 1
    return counts


def _write_environment(installed: list[Installed], script_findings: list[Finding]) -> None:
    rows = [("lightning-patches", lightning_patches.__version__, _parent(os.path.dirname(lightning_patches.__file__)))]
    rows.append(("Python", _python_version(), sys.executable))
    rows += [(one.distribution, one.version, ", ".join(_roots(one)) or "metadata only") for one in installed]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, version, path in rows:
        _output.write(_output.printable(f"{name:{widths[0]}}  {version:{widths[1]}}  {path}"))
    for one in installed:
        if one.note:
            _output.write(_output.paragraph(f"{'WARNING' if one.forbidden else 'note'}: {one.note}."))
        if one.broken is not None:
            _output.write(_output.paragraph(f"WARNING: {one.broken.why}. {one.broken.do}."))
    for finding in script_findings:
        _output.write(_output.paragraph(f"{finding.severity}: {finding.what}. {finding.why} {finding.do}"))
    if not installed:
        _output.write("There is no Lightning in this environment: nothing to patch.")


def _write_patches(shown: list[Entry]) -> None:
    _output.write()
    several = len(by_release(shown)) > 1
    header = ("PATCH", *(("IN",) if several else ()), "VERDICT", "DROP IT AT", "WHAT IT DOES, OR WHY IT IS SKIPPED")
    styles = [_STYLES.get(entry.verdict, "") for entry in shown]
    _output.write_table(header, [_row(entry, several) for entry in shown], styles)
    for entry in shown:
        if entry.verdict in gate.REFUSED:
            _output.write(_output.paragraph(f"{entry.patch}: {entry.reason}."))
    if any(entry.verdict == "disabled" for entry in shown):
        _output.write(_output.paragraph("`LIGHTNING_PATCHES=default,NAME` adds an opt-in patch."))


def _what_to_do(installed: list[Installed], setting: Toggle, found: list[Entry], places: tuple[Place, ...]) -> str:
    """Advice in one sentence."""
    forbidden = next((one for one in installed if one.forbidden), None)
    if forbidden is not None:
        return f"uninstall {forbidden.distribution} {forbidden.version}, which was compromised; read the warning below."
    broken = next((one for one in installed if one.broken is not None), None)
    if broken is not None:
        return f"repair {broken.distribution} {broken.version}, which cannot be imported; read the warning below."
    if setting.selection is None:
        return f"correct {toggle.VARIABLE}, which names something that does not exist."
    if not installed:
        return "install Lightning in this environment, or run the `lightning-patches` of the one that has it."
    refused = [e.patch for e in found if e.verdict in ("drifted", "failed") and e.patch in setting.selection.names]
    if refused:
        return f"read below why {', '.join(refused[:3])} will not be applied, although selected."
    if not any(entry.verdict in ("pending", "applied") for entry in found):
        return "nothing: no patch is selected, or none is needed here."
    if autostart.is_enabled():
        return "nothing: programs of this environment are patched."
    if any(kind in (PATCHED, USED) for kind, *_ in places):
        return "nothing: the script imports lightning_patches."
    return "`import lightning_patches` at the top of the script, or start it with `lightning-patches run`."


def _is_selective(args: argparse.Namespace) -> bool:
    return bool(args.name or args.group or args.verdict)


def _shown(found: list[Entry], args: argparse.Namespace) -> list[Entry]:
    """Return the requested entries. Without a request, only those of patches that can't be applied here."""
    names = {patch.name for key in args.name for patch in _arguments.find_patches(key)}
    groups = {patch.name: patch.group for patch in catalogue.all_patches()}
    return [
        entry
        for entry in found
        if (not names or entry.patch in names)
        and args.group in (None, groups[entry.patch])
        and (args.verdict in (None, entry.verdict))
        and (args.all or _is_selective(args) or entry.verdict in (*gate.REFUSED, "not-supported"))
    ]


def _python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _roots(one: Installed) -> list[str]:
    """Return the directories of the top-level packages: ``.../site-packages``."""
    return sorted({_parent(path, package.count(".") + 1) for package, path in one.packages.items()})


def _parent(path: str, levels: int = 1) -> str:
    for _ in range(levels):
        path = os.path.dirname(path)
    return path


def _toggle_text(setting: Toggle) -> str:
    variable = toggle.VARIABLE
    if setting.error is not None:
        return setting.error
    selection = setting.selection
    assert selection is not None
    extra = "".join(
        f" {word}." for word, is_set in (("Strict", selection.strict), ("Quiet", selection.quiet)) if is_set
    )
    if selection.spec is None:
        return f"{variable} is not set: the default set, in {_PATCHED_PROGRAMS}."
    if not selection.names:
        return f"{variable}={selection.shown}: no patch is applied.{extra}"
    total = len(catalogue.all_patches())
    where = f" In {_PATCHED_PROGRAMS}; for all programs: `lightning-patches autostart enable`."
    where = "" if autostart.is_enabled() else where
    return f"{variable}={selection.shown}: {len(selection.names)} of {total} patches are selected.{extra}{where}"


def _row(entry: Entry, several: bool) -> tuple[str, ...]:
    patch = next(patch for patch in catalogue.all_patches() if patch.name == entry.patch)
    why = entry.reason
    if entry.verdict in ("pending", "applied"):
        why = records.title(patch)
    elif entry.verdict == "disabled" and not patch.default:
        why = f"opt-in, {why}"
    drop = entry.drop_at or "" if entry.verdict not in gate.ELSEWHERE else ""
    where = (f"{entry.distribution} {entry.version}",) if several else ()
    return (entry.patch, *where, entry.verdict, drop, why)


def _summary(found: list[Entry]) -> str:
    """Return the counts for one release: fixes first, then patches that are not counted as fixes."""
    applied = [entry for entry in found if entry.verdict in ("pending", "applied")]
    patches = {patch.name: patch for patch in catalogue.all_patches()}
    probed = sum(patches[entry.patch].probe is not None for entry in applied)
    warning = sum(bool(patches[entry.patch].warns) for entry in applied)
    parts = [f"{fixes_in_words(found)} will be applied"]
    parts += [f"{probed} more if torch has the bug"] if probed else []
    parts += [f"{warning} only warn{'s' if warning == 1 else ''}"] if warning else []
    for verdict in VERDICTS:
        count = sum(entry.verdict == verdict for entry in found)
        if count and verdict not in ("pending", "applied"):
            parts.append(f"{count} {verdict}")
    return ", ".join(parts)


def _in_words(release: str, known: Optional[figures.Figures]) -> str:
    """Return a sentence with the number of known bugs in the installed code, as `audit` counts them."""
    if known is None or not known.known:
        return ""
    text = f"It has {known.known} known bugs: {known.default} fixed by default, {known.all} with `all`."
    more = figures.of_release(*release.split(" ", 1)).known - known.known
    return f"{text} {more} more can't occur with the other packages here." if more > 0 else text
