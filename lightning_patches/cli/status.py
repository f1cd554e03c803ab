"""Show this environment, and for each patch and each installed Lightning what will happen, and why.

Nothing is imported to find out: versions and code are read from the files that Python would import. What is shown is
what a program started here gets, with the LIGHTNING_PATCHES that is set now.

With --json, one object; keys are only ever added:
  schema             1
  lightning_patches  version of this package
  python             {version, executable}
  toggle             {variable, value (null: not set), error (null: none), strict, quiet, selected: [patch names]}
  distributions      [{distribution, version, namespace, packages: {package: path}, forbidden, note}]
  patches            [{patch, namespace, distribution, version, verdict, reason, drop_at, title, group, default}];
                     all of them, whatever --all says; empty if the toggle is in error
  summary            {namespace: {verdict: count}}
  ok                 the exit status is 0
A verdict is one of: pending (will be applied on import), disabled (not selected by the toggle), not-affected,
fixed-upstream, drifted (code that no known release ships; left alone), failed, applied.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Optional

import lightning_patches
from lightning_patches import catalog, distributions, toggle
from lightning_patches.apply import Patcher
from lightning_patches.cli import NOT_APPLIED, OK, USAGE, _output
from lightning_patches.errors import ToggleError
from lightning_patches.verdicts import Entry, entries

HELP = "what the patches do in this environment, and why"

WORDS = {
    "pending": "will be applied",
    "applied": "applied",
    "disabled": "disabled",
    "drifted": "NOT APPLIED",
    "failed": "FAILED",
    "fixed-upstream": "fixed upstream",
    "not-affected": "not affected",
}
"""A verdict in the user's words, in the order in which verdicts are counted."""

_ELSEWHERE = ("fixed-upstream", "not-affected")
_STYLES = {"drifted": "red", "failed": "bold red", "disabled": "dim", "fixed-upstream": "dim", "not-affected": "dim"}
_ADVISORY = "GHSA-w37p-236h-pfx3"


@dataclass
class Installed:
    """One distribution of Lightning in this environment.

    Args:
        distribution: ``"lightning"``, ``"pytorch-lightning"`` or ``"lightning-fabric"``.
        version: what its code says, or its metadata where there is no code.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        packages: its packages and their directories.
        forbidden: it is a release that was compromised on PyPI.
        note: what the user must know about it, "" for nothing.
    """

    distribution: str
    version: str
    namespace: str
    packages: dict[str, str] = field(default_factory=dict)
    forbidden: bool = False
    note: str = ""


@dataclass(frozen=True)
class Toggle:
    """``LIGHTNING_PATCHES`` as this environment has it; ``selection`` is ``None`` if it is in error."""

    value: Optional[str]
    selection: Optional[toggle.Selection]
    error: Optional[str] = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also what is not affected, or fixed upstream")
    parser.add_argument("--json", action="store_true", help="as JSON, always complete")


def run(args: argparse.Namespace) -> int:
    installed = find_installed()
    setting = read_toggle()
    found = verdicts(setting)
    status = _exit_status(setting, installed, found)
    if args.json:
        _output.write_json(_document(installed, setting, found, status))
    else:
        _write(installed, setting, found, args.all)
    return status


def read_toggle() -> Toggle:
    value = os.environ.get(toggle.VARIABLE)
    try:
        return Toggle(value, toggle.parse(value, catalog.all_patches()))
    except ToggleError as error:
        return Toggle(value, None, str(error))


def verdicts(setting: Toggle) -> list[Entry]:
    """The verdict on each patch in each installed namespace; empty if the toggle is in error."""
    if setting.selection is None:
        return []
    patcher = Patcher(catalog.all_patches())
    patcher.selection = setting.selection  # read by the verdicts; nothing gets hooked in this process
    return entries(patcher)


def find_installed() -> list[Installed]:
    """The Lightning distributions of this environment, found on disk. Forbidden ones are found by metadata alone."""
    found: dict[str, Installed] = {}
    for name in distributions.PARTS:
        namespace = distributions.find(name)
        for part in namespace.parts.values() if namespace is not None else ():
            entry = Installed(part.distribution, part.version, name)
            found.setdefault(part.distribution, entry).packages[part.package] = part.directory
    for distribution, namespace_name in _NAMES.items():
        version = _metadata_version(distribution)
        if version in distributions.FORBIDDEN and distribution not in found:
            found[distribution] = Installed(distribution, version, namespace_name)
        if distribution in found:
            _judge(found[distribution], version)
    return list(found.values())


_NAMES = {"lightning": "lightning", "pytorch-lightning": "pytorch_lightning", "lightning-fabric": "pytorch_lightning"}


def _metadata_version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _judge(installed: Installed, metadata_version: str) -> None:
    hit = sorted({installed.version, metadata_version} & distributions.FORBIDDEN)
    if not hit:
        return
    if _from_source(installed.distribution):
        # Upstream's master still carries the number 2.6.2.
        installed.note = f"built from source; the release {hit[0]} on PyPI was compromised ({_ADVISORY})"
        return
    installed.forbidden = True
    installed.note = (
        f"{installed.distribution} {hit[0]} from PyPI was compromised and runs hostile code when it is imported "
        f"({_ADVISORY}). Do not import it: uninstall it, take 2.6.1 or 2.6.4, and treat every secret that this "
        "machine could read as known to others"
    )


def _from_source(distribution: str) -> bool:
    """pip leaves ``direct_url.json`` beside what it built from a repository or a directory, not from PyPI."""
    try:
        origin = importlib.metadata.distribution(distribution).read_text("direct_url.json") or ""
    except (importlib.metadata.PackageNotFoundError, OSError):
        return False
    return '"vcs_info"' in origin or '"dir_info"' in origin


def _exit_status(setting: Toggle, installed: list[Installed], found: list[Entry]) -> int:
    if setting.error is not None:
        return USAGE
    wanted = setting.selection.names if setting.selection is not None else frozenset()
    refused = any(entry.verdict in ("drifted", "failed") and entry.patch in wanted for entry in found)
    return NOT_APPLIED if refused or any(one.forbidden for one in installed) else OK


def _document(installed: list[Installed], setting: Toggle, found: list[Entry], status: int) -> dict[str, Any]:
    patches = {patch.name: patch for patch in catalog.all_patches()}
    selection = setting.selection
    return {
        "schema": 1,
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
            }
            for entry in found
        ],
        "summary": _counts(found),
        "ok": status == OK,
    }


def _counts(found: list[Entry]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for entry in found:
        of_namespace = counts.setdefault(entry.namespace, dict.fromkeys(WORDS, 0))
        of_namespace[entry.verdict] += 1
    return counts


def _write(installed: list[Installed], setting: Toggle, found: list[Entry], everything: bool) -> None:
    rows = [("lightning-patches", lightning_patches.__version__, os.path.dirname(lightning_patches.__file__))]
    rows.append(("Python", _python_version(), sys.executable))
    for one in installed:
        rows.append((one.distribution, one.version, ", ".join(_roots(one)) or "metadata only"))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, version, path in rows:
        _output.write(f"{name:{widths[0]}}  {version:{widths[1]}}  {path}")
    for one in installed:
        if one.note:
            _output.write(_output.paragraph(f"{'WARNING' if one.forbidden else 'note'}: {one.note}."))
    if not installed:
        _output.write("There is no Lightning in this environment: nothing to patch.")
    _output.write()
    _output.write(_output.paragraph(_toggle_text(setting)))
    if not found:
        return
    shown = [entry for entry in found if everything or entry.verdict not in _ELSEWHERE]
    if shown:
        _output.write()
        _output.write_table(
            ("PATCH", "IN", "VERDICT", "WHAT IT DOES, OR WHY NOT", "DROP IT AT"),
            [_row(entry) for entry in shown],
            [_STYLES.get(entry.verdict, "") for entry in shown],
        )
    _output.write()
    for namespace, counts in _counts(found).items():
        label = ", ".join(f"{one.distribution} {one.version}" for one in installed if one.namespace == namespace)
        _output.write(f"{label}: {_summary(counts, everything)}")


def _python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _roots(one: Installed) -> list[str]:
    """Directories of the top-level packages: ``.../lightning`` for ``lightning.pytorch`` and ``lightning.fabric``."""
    return sorted({os.path.dirname(path) if "." in package else path for package, path in one.packages.items()})


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
        return f"{variable} is not set: the default set, in programs that `import lightning_patches`."
    if not selection.names:
        return f"{variable}={selection.spec}: nothing is applied.{extra}"
    total = len(catalog.all_patches())
    return f"{variable}={selection.spec}: {len(selection.names)} of {total} patches are selected.{extra}"


def _row(entry: Entry) -> tuple[str, str, str, str, str]:
    patch = next(patch for patch in catalog.all_patches() if patch.name == entry.patch)
    why = entry.reason
    if entry.verdict in ("pending", "applied"):
        why = patch.title
    elif entry.verdict == "disabled" and not patch.default:
        why = f"opt-in, {why}: LIGHTNING_PATCHES=default,{patch.name} adds it"
    drop = entry.drop_at or "" if entry.verdict not in _ELSEWHERE else ""
    return entry.patch, f"{entry.distribution} {entry.version}", WORDS[entry.verdict], why, drop


def _summary(counts: dict[str, int], everything: bool) -> str:
    parts = [f"{counts[verdict]} {word}" for verdict, word in WORDS.items() if counts[verdict]]
    hidden = not everything and any(counts[verdict] for verdict in _ELSEWHERE)
    return ", ".join(parts) + (" (--all shows them too)" if hidden else "")
