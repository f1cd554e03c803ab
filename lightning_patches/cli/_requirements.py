"""Reads which Lightning a project asks for, from the files in which projects say so.

Every format is read with the library that is made for it. Where that is not installed, or the format is not known,
the file is refused: that it asks for no Lightning must never be said of a file that was not understood.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Optional

from lightning_patches.cli import UsageError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAMES = ("lightning", "pytorch-lightning", "lightning-fabric")
"""The distributions of Lightning."""

_NAMED = re.compile(r"(?<![\w./@-])(?:pytorch[-_.]lightning|lightning(?:[-_.]fabric)?)(?![\w-]|/|\.\w)", re.IGNORECASE)


class Found(NamedTuple):
    """One requirement of a Lightning distribution.

    Args:
        requirement: what is asked for.
        file: where it stands, "" for the command line.
        line: on which line of that file, from 1.
        locked: a lock file: all that is installed is named in it.
    """

    requirement: Requirement
    file: str = ""
    line: int = 0
    locked: bool = False


def parse(text: str) -> Optional[Requirement]:
    """A requirement as pip takes it, ``None`` if ``text`` is not one.

    An address that tells the release, of a wheel, of an sdist or of a release's tag in git, is taken as that release.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
        if found.url is None:
            return found
        told = _from_address(found.url)
        marker = f" ; {found.marker}" if found.marker else ""
        return Requirement(told + marker) if told and Requirement(told).url is None else found
    except InvalidRequirement:
        told = _from_address(text)
        return Requirement(told) if told else None


def _from_address(text: str) -> str:
    """What is at an address or path as a requirement, ``name @ address`` where its release is not told; "" if neither
    its name is."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    address, _, fragment = text.partition("#")
    if re.search(r"\s", address):
        return ""
    file = re.split(r"[/\\]", address.partition("?")[0])[-1]
    if file.endswith((".whl", ".tar.gz", ".zip")):
        try:
            name, version = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
            return f"{name}=={version}"
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            return ""
    in_git = re.fullmatch(r"git\+\w+://(?:[^/@]*@)?[^@]*?/([\w.-]+?)(?:\.git)?/?(?:@([^@]*))?", address)
    if in_git is None:
        return ""
    egg = re.search(r"(?:^|&)egg=([A-Za-z0-9][\w.-]*)", fragment)
    named, tag = egg[1] if egg else in_git[1], in_git[2] or ""
    if re.fullmatch(r"v?\d+\.\d+[\w.]*", tag):
        try:
            return f"{named}=={Version(tag)}"
        except InvalidVersion:
            pass
    return f"{named} @ {address}"


def distribution(requirement: Requirement) -> Optional[str]:
    """The Lightning distribution that is required here; ``None`` for anything else."""
    from packaging.utils import canonicalize_name

    name = canonicalize_name(requirement.name)
    if name not in NAMES or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
        return None
    return name


def read(path: str) -> list[Found]:
    """The Lightnings that a file asks for.

    Raises:
        UsageError: it cannot be read, or is of a format that is not known or whose library is not installed.
    """
    name = os.path.basename(path).lower()
    reader = next(reader for pattern, reader in _FORMATS if re.fullmatch(pattern, name))
    if reader is _pip:
        unclear: list[str] = []
        asked = list(_pip(path, set(), unclear))
        return asked or _none(unclear)
    if reader is _dockerfile:
        unclear = []
        return list(_dockerfile(path, unclear)) or _none(unclear)
    text = _text(path)
    if reader is None:
        raise UsageError(
            f"{path}: files of this kind cannot be read. Those that can are requirements files of pip, pyproject.toml, "
            "uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock, environment.yml and Dockerfile."
        )
    try:
        found = list(dict.fromkeys(reader(text, path)))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UsageError(f"{path} is not what its name says: {error}") from None
    if reader is _pyproject and not found and "dependencies" in _toml(text).get("project", {}).get("dynamic", ()):
        raise UsageError(f"{path} leaves its dependencies to the build (dynamic). Give the file that they stand in.")
    locked = reader in (_locked, _pipfile_lock)
    return [Found(one, path, _line_of(one, text), locked) for one in _of_lightning(found, path)]


def _none(unclear: list[str]) -> list[Found]:
    """No Lightning, if all of a file was understood."""
    if unclear:
        raise UsageError(f"{unclear[0]} cannot be understood, and so whether Lightning is asked for cannot be told.")
    return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None


def _of_lightning(texts: Iterable[str], path: str) -> Iterator[Requirement]:
    for text in texts:
        requirement = parse(text)
        if requirement is not None:
            if distribution(requirement) is not None:
                yield requirement
        elif _NAMED.match(text):
            raise UsageError(f"{path}: {text!r} cannot be understood. Give it with --requirement, as lightning==2.2.5.")


def _line_of(requirement: Requirement, text: str) -> int:
    """The first line that names the distribution; 1 if there is none."""
    name = re.sub(r"[-_.]+", "[-_.]+", re.escape(requirement.name).replace("\\-", "-"))
    named = re.compile(rf"(?<![\w.-]){name}(?![\w-])", re.IGNORECASE)
    return next((number for number, line in enumerate(text.splitlines(), 1) if named.search(line)), 1)


def _pip(path: str, seen: set[str], unclear: list[str]) -> Iterator[Found]:
    """The requirements of a file for pip, and of those that it includes. Paths and pip's options are passed over; what
    is neither goes to ``unclear``."""
    real = os.path.realpath(path)
    if real in seen:
        return
    seen.add(real)
    for number, line in _logical_lines(_text(path)):
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        included = re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)$", line)
        if included:
            yield from _pip(os.path.join(os.path.dirname(path), included[1]), seen, unclear)
            continue
        line = re.sub(r"^(?:-e|--editable)[\s=]+", "", line)
        line = re.split(r"\s--", line)[0].strip()
        place = f"{path}, line {number}"
        if line and parse(line) is None and not re.match(r"-|\.|\S*[/\\]\S*$|\w+://", line):
            unclear.append(f"{place}: {line!r}")
        for requirement in _of_lightning([line] if line else [], place):
            yield Found(requirement, path, number)


_INSTALLERS = r"(?:\S*/)?(?:(?:uv\s+)?pip[\d.]*|python[\d.]*\s+-m\s+pip)\s+install\s"
_CONDA_INSTALLERS = r"(?:\S*/)?(?:conda|mamba|micromamba)\s+(?:install|create)\s"


def _dockerfile(path: str, unclear: list[str]) -> Iterator[Found]:
    """What the RUN lines of a Dockerfile install by pip or conda. Where they name no Lightning, it may still be in the
    image that it begins with, and so all of it is ``unclear``."""
    unclear.append(f"{path}: no installation of Lightning by its name; what else it builds on")
    variables: dict[str, str] = {}
    lines = _text(path).splitlines()
    without_comments = ["\\" if line.lstrip().startswith("#") else line for line in lines]
    for number, line in _logical_lines("\n".join(without_comments)):
        for name, value in re.findall(r"(\w+)=(\S+)", line) if re.match(r"\s*(?:ARG|ENV)\s", line, re.I) else ():
            variables[name] = value.strip("'\"")
        if not re.match(r"\s*RUN\s", line, re.I):
            continue
        line = re.sub(r"\$\{?(\w+)\}?", lambda found: variables.get(found[1], found[0]), line)
        for command in re.split(r"&&|\|\||;", line):
            by_pip = re.search(_INSTALLERS, command)
            by_conda = by_pip or re.search(_CONDA_INSTALLERS, command)
            if by_conda is None:
                continue
            place = f"{path}, line {number}"
            try:
                words = shlex.split(command[by_conda.end() :])
            except ValueError:
                raise UsageError(f"{place}: {command.strip()!r} cannot be understood.") from None
            for before, word in zip(["", *words], words):
                if by_pip and before in ("-r", "-c", "--requirement", "--constraint"):
                    yield from _pip(os.path.join(os.path.dirname(path), word), set(), unclear)
                elif not word.startswith("-"):
                    for one in _of_lightning([word if by_pip else conda_spec(word)], place):
                        yield Found(one, path, number + _line_of(one, "\n".join(lines[number - 1 :])) - 1)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with the number of their first one; one that ends in a backslash goes on in the next."""
    begun, number = "", 0
    for index, line in enumerate(text.splitlines(), 1):
        number = number if begun else index
        begun += line
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
        else:
            yield number, begun
            begun = ""
    if begun:
        yield number, begun


def _toml(text: str) -> Any:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name).loads(text)
        except ModuleNotFoundError:
            continue
    raise UsageError(
        "reading TOML needs Python 3.11 or `pip install tomli`, which comes with the extra: lightning-patches[audit]."
    )


def _locked(text: str, path: str) -> Iterator[str]:
    """uv.lock, poetry.lock, pdm.lock, and pylock.toml, which is the standard for them (PEP 751)."""
    data = _toml(text)
    for package in data.get("package", data.get("packages", ())):
        if "version" in package:
            yield f"{package['name']}=={package['version']}"
        elif _NAMED.fullmatch(package["name"]):  # from a directory or a repository
            yield f"{package['name']} @ https://unknown.invalid"


def _pyproject(text: str, path: str) -> Iterator[str]:
    data = _toml(text)
    project = data.get("project", {})
    yield from project.get("dependencies", ())
    groups = [*project.get("optional-dependencies", {}).values(), *data.get("dependency-groups", {}).values()]
    tool = data.get("tool", {})
    groups += tool.get("pdm", {}).get("dev-dependencies", {}).values()
    groups.append(tool.get("uv", {}).get("dev-dependencies", ()))
    for group in groups:
        yield from (item for item in group if isinstance(item, str))
    poetry = tool.get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from _named(table)


def _pipfile(text: str, path: str) -> Iterator[str]:
    data = _toml(text)
    for section, table in data.items():
        if isinstance(table, dict) and section not in ("requires", "pipenv", "scripts"):
            yield from _named(table)


def _pipfile_lock(text: str, path: str) -> Iterator[str]:
    for section, table in json.loads(text).items():
        if section != "_meta":
            yield from _named(table)


def _named(table: dict[str, Any]) -> Iterator[str]:
    """``{name: version}`` as Poetry and Pipenv write it; ``version`` may stand in a table of its own."""
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            version = one.get("version") if isinstance(one, dict) else one
            if version is None:
                yield f"{name} @ https://unknown.invalid"
            else:
                yield name + _specifier(version)


def _specifier(text: str) -> str:
    """Poetry's and conda's version constraints as those of pip: ``"^2.2"`` is ``">=2.2,<3"``."""
    parts = []
    for clause in text.replace(" ", "").split(","):
        caret = re.fullmatch(r"\^(\d+)(\S*)", clause)
        tilde = re.fullmatch(r"~(?!=)(\d+)(?:\.(\d+))?(\S*)", clause)
        if clause in ("", "*"):
            continue
        if caret:
            parts.append(f">={caret[1]}{caret[2]},<{int(caret[1]) + 1}")
        elif tilde:
            after = f"{tilde[1]}.{int(tilde[2]) + 1}" if tilde[2] else str(int(tilde[1]) + 1)
            parts.append(f">={clause[1:]},<{after}")
        else:
            parts.append(clause if clause[0] in "<>=!~" else f"=={clause}")
    return ",".join(parts)


def _conda(text: str, path: str) -> Iterator[str]:
    try:
        yaml = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise UsageError(
            "reading YAML needs `pip install PyYAML`, which comes with the extra: lightning-patches[audit]."
        ) from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("dependencies"), list):
        raise UsageError(f"{path} has no list of dependencies: it is not a conda environment.")
    for item in data["dependencies"]:
        if isinstance(item, dict):
            yield from item.get("pip", ())
        else:
            yield conda_spec(item)


def conda_spec(text: str) -> str:
    """conda's ``channel::name=2.2.5=build`` as pip says it. One ``=`` allows what begins so; a build is exact."""
    found = re.fullmatch(r"(?:\S+::)?([\w.-]+)\s*(.*)", text.strip())
    if found is None:
        return text
    name, version = found[1], found[2].strip()
    exact = re.fullmatch(r"={1,2}\s*([\w.!+]+)(?:=\S+)?", version)
    if exact and (version.startswith("==") or "=" in version.lstrip("=")):
        return f"{name}=={exact[1]}"
    if exact:
        return f"{name}=={exact[1]}.*" if exact[1].count(".") < 2 else f"{name}=={exact[1]}"
    return name + _specifier(version)


Reader = Callable[..., Iterator[Any]]
_FORMATS: tuple[tuple[str, Optional[Reader]], ...] = (
    (r"(?:uv|poetry|pdm)\.lock|pylock(?:\..*)?\.toml", _locked),
    (r"pyproject\.toml", _pyproject),
    (r"pipfile\.lock", _pipfile_lock),
    (r"pipfile", _pipfile),
    (r"(?:env|conda).*\.ya?ml", _conda),
    (r"(?:.*\.)?(?:dockerfile|containerfile)(?:\..*)?", _dockerfile),
    (r".*\.(?:toml|lock|ya?ml|json|cfg|py|whl|gz|zip|md)", None),
    (r".*", _pip),
)
"""File names, and who reads them. What nobody reads is refused; a name that says nothing is pip's."""
