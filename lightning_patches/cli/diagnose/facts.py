"""Find the release of Lightning that wrote a log, how the program was started, and the frames of the user's code.

The release follows from the line numbers of frames, or from output of pip or conda, a bug report or a path.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Optional

from lightning_patches.cli.diagnose import frames
from lightning_patches.cli.diagnose.frames import Frame
from lightning_patches.cli.diagnose.lines import Line
from lightning_patches.cli.diagnose.tracebacks import CELL, Raised
from lightning_patches.engine import distributions, fingerprints
from lightning_patches.known import figures
from lightning_patches.known.releases import Bounds, bounds

MOST_RELEASES = 6
"""Most releases that are listed. More releases are shown as a range."""

_NAME = r"(?<![\w./-])(?P<name>(?i:pytorch[-_ ])?(?i:lightning)|PL|pl)"
_VERSION = r"v?(?P<version>\d\.\d{1,3}(?:\.\d{1,3})?(?:\.?post\d)?)"
_END = r"(?![\w.]*\*)(?!\.?\w)"
_BETWEEN = (
    r"""(?:\[[\w,-]{1,40}\])?(?:\.__version__)?(?:[\s:=(@,|"'`]|(?i:version|release|from)\b|(?:is|was)\b){1,60}"""
)
_VERSION_TEXTS = (
    re.compile(rf"{_NAME}{_BETWEEN}{_VERSION}(?: (?:to|->|and|or) v?(?P<other>\d\.\d{{1,3}}\.\d{{1,3}}))?{_END}"),
    re.compile(
        rf"(?<![\w.-])(?P<name>pytorch[-_]lightning|lightning)-{_VERSION}(?=-py|\.dist-info|-pyh|\s|$|-\w{{5,20}}/|\.tar)"
    ),
    re.compile(rf"{_NAME}\S{{0,60}} in \S{{0,60}}[/\\][^\n]{{0,200}}\({_VERSION}\)"),
    re.compile(rf"PyTorch Lightning Version(?: \(e\.g\.,? [\w.]{{1,12}}\))?\s?:\s{{0,20}}{_VERSION}{_END}"),
    re.compile(rf"upgraded your loaded checkpoint from v[\w.]{{1,20}} to {_VERSION}{_END}"),
)
_MAY_NAME = re.compile(r"ightning|LIGHTNING|\b(?:PL|pl)\b")
_START_LINE = re.compile(
    r"lightning_patches: (?P<distribution>[a-z-]{9,20}) (?P<version>\S{1,40}): (?P<count>\d{1,4}) fix(?:es)? \("
)
"""Matches the line that a program with patches prints at its start."""
_INSTALLED = re.compile(
    r"[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]*|python\d\.\d+[/\\]lib)[/\\]|^<|^[A-Za-z]:\\.*\\[Ll]ib\\"
)
_ROOT = re.compile(
    r"(.*?[/\\]|)(?:lightning[/\\](?:pytorch|fabric)|pytorch_lightning|lightning_fabric|torch[/\\](?:nn|utils|distributed|optim))"
    r"[/\\]"
)
"""Matches a directory of packages, which `pip install --target` can put anywhere, by the path of a known package."""
_DEPENDENCIES = re.compile(
    r"(?:lightning|torch|pytorch_lightning|jsonargparse|fsspec|numpy|tqdm|rich|yaml)\w{0,30}[/\\]"
)
"""Matches packages that are installed with Lightning, below such a directory."""
_COMMAND = re.compile(r"[/\\](?:bin|Scripts)[/\\](?:[^/\\]+(?<!\.py)|[^/\\]+\.exe[/\\]__main__\.py)$")
"""Matches the entry script of a command, such as torchrun."""
_NOTEBOOK = re.compile(r"IPython|ipython-input|ipykernel|<command-")
_LAUNCHERS = re.compile(r"torch/distributed/(?:run|elastic|launch)|torchrun|ChildFailedError")

How = Literal["script", "module", "command", "notebook", "torchrun", "pytest", "unknown"]


@dataclass(frozen=True)
class Start:
    """The way in which the program was started.

    Args:
        how: kind of the launcher.
        program: arguments for `lightning-patches run`; "" if unknown.
        file: name of the script; "" if unknown.
    """

    how: How = "unknown"
    program: str = ""
    file: str = ""


@dataclass(frozen=True)
class Facts:
    """Facts about a log other than its errors.

    Args:
        distribution: ``"lightning"`` or ``"pytorch-lightning"``; "" if unknown.
        releases: releases that may have written the log, oldest first; empty if unknown.
        by: source of the releases, ``"frames"``, ``"text"`` or "".
        compromised: the first line that names 2.6.2 or 2.6.3, or ``None``.
        start: how the program was started.
        is_patched: True if the program ran with the default set, or most of it.
    """

    distribution: str = ""
    releases: tuple[str, ...] = ()
    by: str = ""
    compromised: Optional[Line] = None
    start: Start = Start()
    is_patched: bool = False


def find(lines: Sequence[Line], raised: Sequence[Raised]) -> Facts:
    named: dict[str, list[str]] = {}
    compromised: Optional[Line] = None
    is_patched = False
    for line in lines:
        if not _MAY_NAME.search(line.text):
            continue
        for name, version in named_in(line.text):
            if version not in distributions.FORBIDDEN:
                named.setdefault(name, []).append(version)
            elif compromised is None:
                compromised = line
        is_patched = is_patched or _has_default_set(line.raw)
    own_frames = [frame for error in raised for frame in error.frames if frames.upstream_path(frame.path)]
    distribution = _distribution(own_frames, named)
    fitting = _of_frames([error.frames for error in raised])
    fitting = frozenset(one for one in fitting if _allows_python(bounds(distribution, one), own_frames))
    written = {version for name, versions in named.items() if name in ("", distribution) for version in versions}
    written = written or {version for versions in named.values() for version in versions}
    releases: tuple[str, ...] = ()
    by = ""
    if written and (not fitting or written & fitting):
        releases, by = _sorted(written & fitting or written), "text"
    elif fitting:
        releases, by = _sorted(fitting), "frames"
    return Facts(distribution, releases, by, compromised, start(lines, raised), is_patched)


def _has_default_set(text: str) -> bool:
    """True for the start line of a program with most of the default set. Older versions of this package have a smaller
    set; fewer fixes are a selection by name."""
    match = _START_LINE.search(text) if "lightning_patches: " in text else None
    if match is None:
        return False
    return 2 * int(match["count"]) >= figures.of_release(match["distribution"], match["version"]).default


def named_in(text: str) -> Iterable[tuple[str, str]]:
    """Yield the releases that a line names, each with its distribution; "" if the line does not name that."""
    for pattern in _VERSION_TEXTS:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            name = (groups.get("name") or "").replace("_", "-")
            name = name if name in ("lightning", "pytorch-lightning") else ""
            for version in filter(None, (groups["version"], groups.get("other"))):
                version = version.replace("post", ".post").replace("..", ".")
                is_series = version.count(".") == 1 and "==" not in match.group()
                yield from ((name, one) for one in _releases(f"{version}." if is_series else version))


@lru_cache(maxsize=None)
def _releases(version: str) -> tuple[str, ...]:
    """Return the release with this number, or all releases of a series such as ``2.5.``."""
    known = (*fingerprints.older_releases(), *fingerprints.known_releases())
    if version.endswith("."):
        return tuple(one for one in known if one.startswith(version))
    exact = f"{version}.0" if version.count(".") == 1 else version
    return (exact,) if exact in known or exact in distributions.FORBIDDEN else ()


def _distribution(own: Sequence[Frame], named: dict[str, list[str]]) -> str:
    if own:
        paths = [frame.path.replace("\\", "/") for frame in own]
        old = sum("pytorch_lightning/" in path or "lightning_fabric/" in path for path in paths)
        return "pytorch-lightning" if old * 2 > len(paths) else "lightning"
    return next((name for name in ("lightning", "pytorch-lightning") if name in named), "")


def _allows_python(requirements: Bounds, own: Sequence[Frame]) -> bool:
    """False if the path of a frame names an older Python than a release requires."""
    found = re.search(r"[/\\]python3\.(\d+)[/\\]", own[-1].path) if own else None
    lowest = re.search(r">=3\.(\d+)", requirements.get("python", ""))
    return not (found and lowest) or int(found[1]) >= int(lowest[1])


def _of_frames(tracebacks: Iterable[tuple[Frame, ...]]) -> frozenset[str]:
    """Return the releases that fit all tracebacks. If there are none, use the traceback that fits the fewest
    releases."""
    found = [frames.releases(one) for one in tracebacks]
    fitting = [one for one in found if one]
    common = frozenset.intersection(*fitting) if fitting else frozenset()
    return common or min(fitting, key=len, default=frozenset())


def _sorted(versions: Iterable[str]) -> tuple[str, ...]:
    known = [*fingerprints.older_releases(), *fingerprints.known_releases(), *sorted(distributions.FORBIDDEN)]
    return tuple(sorted(versions, key=lambda version: known.index(version) if version in known else -1))


def in_words(releases: Sequence[str]) -> str:
    """``"2.5.1 or 2.5.2"``, ``"2.0.0 to 2.1.3"``."""
    if len(releases) > MOST_RELEASES:
        return f"{releases[0]} to {releases[-1]}"
    return f"{', '.join(releases[:-1])} or {releases[-1]}" if len(releases) > 1 else "".join(releases)


def own(frames_: Sequence[Frame]) -> list[Frame]:
    """Return the frames in the user's files, without the entry scripts of commands.

    If a directory has both packages and the program, the known packages in it are left out.
    """
    roots = {root[1] for root in (_ROOT.match(one.path) for one in frames_) if root is not None}
    inside = [(one, [one.path[len(root) :] for root in roots if one.path.startswith(root)]) for one in frames_]
    inside = [(one, rest) for one, rest in inside if one.path == CELL or not _is_installed(one)]
    inside = [(one, rest) for one, rest in inside if not any(map(_DEPENDENCIES.match, rest))]
    program = inside[0][0].path if inside else ""
    is_mixed = any(program.startswith(root) for root in roots)
    return [one for one, rest in inside if is_mixed or not rest]


def _is_installed(frame: Frame) -> bool:
    path = frame.path.replace("\\", "/")
    if _INSTALLED.search(frame.path) or _COMMAND.search(frame.path):
        return True
    if frame.function == "<module>" or re.match(r"/|~|[A-Za-z]:/", path):
        return False
    # A tool has shortened the path, or it is relative.
    *folders, file = path.split("/")
    modules, packages = _standard_library()
    return not packages.isdisjoint(folders) or file.partition(".")[0] in modules


@lru_cache(maxsize=None)
def _standard_library() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the modules and of the packages of Python's standard library."""
    try:
        names = [file.name for file in os.scandir(os.path.dirname(os.__file__))]
    except OSError:  # it is in an archive
        names = []
    packages = {name for name in names if "." not in name} - {"test"}
    return frozenset(name[:-3] for name in names if name.endswith(".py")), frozenset(packages)


def start(lines: Sequence[Line], raised: Sequence[Raised]) -> Start:
    """Find how the program was started, from its outermost frames and from lines of launchers."""
    every = [frame for error in raised for frame in error.frames]
    if any(frame.path == CELL or _NOTEBOOK.search(frame.path) for frame in every):
        return Start("notebook")
    launched = any(_LAUNCHERS.search(line.text) for line in lines if "torch" in line.text or "Child" in line.text)
    for error in raised:
        frames_ = list(error.frames)
        if any("/_pytest/" in frame.path for frame in frames_) or lines[error.message].text.startswith("E   "):
            return Start("pytest", "-m pytest")
        by_runpy = bool(frames_) and "runpy" in frames_[0].path
        for frame in frames_:
            found = _program(frame, by_runpy)
            if found is not None:
                return Start("torchrun", "", found.file) if launched and found.how != "command" else found
    return Start("torchrun") if launched else Start()


def _program(frame: Frame, by_runpy: bool) -> Optional[Start]:
    """Return how the program was started if this is its outermost frame."""
    path = frame.path.replace("\\", "/")
    parts = path.split("/")
    if frame.function not in ("<module>", "") or "runpy" in path or path.startswith("<"):
        return None
    if _COMMAND.search(path):
        name = parts[-1] if parts[-1] != "__main__.py" else parts[-2][: -len(".exe")]
        return None if name in ("torchrun", "pytest", "py.test") else Start("command", f"-- {shlex.quote(name)}", name)
    if parts[-1] == "__main__.py" and len(parts) > 1:
        return Start("module", f"-m {shlex.quote(parts[-2])}", parts[-1])
    if not path.endswith(".py"):
        return None
    if _INSTALLED.search(frame.path):
        inside = re.split(r"/(?:site|dist)-packages/", path)
        if by_runpy and len(inside) == 2 and not re.match(r"(?:torch|accelerate|ray|lightning)/", inside[1]):
            return Start("module", f"-m {shlex.quote(inside[1][:-3].replace('/', '.'))}", parts[-1])
        return None
    if by_runpy:
        return Start("module", "", parts[-1])
    shown = parts[-1]
    if os.path.isfile(frame.path):
        try:
            shown = min(frame.path, os.path.relpath(frame.path), key=len)
        except (OSError, ValueError):  # the working directory is gone, or on another drive
            shown = frame.path
    return Start("script", shlex.quote(shown), shown)
