"""Known source of each target in each release: tells affected code from fixed code from code nobody has seen.

The data (``fingerprints.json``) is written by ``scripts/renew`` from the wheels of all releases of 2.x and, for the
patches that concern them, of 1.5 to 1.9. It also has an index of the patches.
A file's sha256 is looked up first, because hashing a file is ten times cheaper than parsing it; only in a file that
no release shipped is the function itself compared. Of what a patch calls, ``"pytorch.utilities.parsing:some()"``, only
the signature is compared.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pkgutil
import re
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Union

from lightning_patches.engine.distributions import Part
from lightning_patches.patch import Impact, Patch, Upstream

DATA_FILE = "fingerprints.json"
"""Beside this file, which may be in an archive."""
ABSENT = "absent"
MARKER = "lightning-patches: "
"""Our diffs leave this comment with the patch's name beside the lines that they change."""

_KINDS = ("property", "setter", "cached_property", "staticmethod", "classmethod", "contextmanager")
"""Decorators that change how a function is called."""
_FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Source(NamedTuple):
    """What is known of one location in one installed package.

    Args:
        releases: releases that ship exactly this code; empty when no release does.
        exists: the location is there at all.
        diffs: names of our own diffs that the file carries.
    """

    releases: frozenset[str]
    exists: bool
    diffs: frozenset[str]


def source_of(part: Part, location: str) -> Source:
    """Look at a location's source on disk.

    Args:
        part: the installed package.
        location: ``"pytorch.tuner.lr_finder:_lr_find"``, or ``"pytorch.tuner.lr_finder:_lr_find()"`` for its signature.

    Raises:
        OSError: the file is there but cannot be read.
    """
    module, _, attribute = location.partition(":")
    path = part.file_of(module)
    absent_in = _with_function(location, ABSENT)
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return Source(absent_in, False, frozenset())
    known_digest = _digest_of(path, state.st_mtime_ns, state.st_size)
    releases = _with_file(part.namespace, module, known_digest)
    if releases:
        return Source(releases, not (releases & absent_in), frozenset())
    if attribute.endswith("()"):
        signature = _signatures_in(path, state.st_mtime_ns, state.st_size).get(attribute[:-2])
        return Source(_with_function(location, signature or ABSENT), signature is not None, frozenset())
    with open(path, "rb") as file:
        text = file.read().decode("utf-8", errors="replace")
    diffs = frozenset(re.findall(re.escape(MARKER) + r"([a-z0-9-]+)", text))
    digest = function_digest(text, attribute)
    return Source(_with_function(location, digest or ABSENT), digest is not None, diffs)


def known_releases() -> tuple[str, ...]:
    """All releases of 2.x that the data covers, oldest first."""
    return tuple(_data()["releases"])


def older_releases() -> tuple[str, ...]:
    """The releases of ``pytorch-lightning`` 1.x that the data covers for the patches that concern them."""
    return tuple(_data()["releases_1x"])


@lru_cache(maxsize=None)
def index() -> tuple[Patch, ...]:
    """The catalogue as a start needs it: a patch that is not for the release at hand need not be imported.

    Empty where ``scripts/renew`` has not made it.
    """
    found = []
    for row in _data().get("patches", ()):
        record: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
        }
        record["upstream"] = Upstream(*row["upstream"])
        found.append(Patch(title="", targets=(), impact=Impact(""), **record))
    return tuple(found)


@lru_cache(maxsize=None)
def _digest_of(path: str, modified: int, size: int) -> str:
    """Of a file in the state that its time and size stand for. Cached: several patches have targets in one file."""
    with open(path, "rb") as file:
        return file_digest(file.read())


def file_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def function_digest(text: str, attribute: str) -> Optional[str]:
    """Digest of one function's source, the same in both namespaces; for ``"function()"`` its signature, as it is.
    ``None`` if the function is not there."""
    if attribute.endswith("()"):
        return signatures(text).get(attribute[:-2])
    source = function_source(text, attribute)
    if source is None:
        return None
    neutral = source.replace("pytorch_lightning", "lightning.pytorch").replace("lightning_fabric", "lightning.fabric")
    return hashlib.sha256(neutral.encode()).hexdigest()[:16]


def function_source(text: str, attribute: str) -> Optional[str]:
    """The source lines of ``attribute`` (``"f"``, ``"Class.method"``), decorators included."""
    try:
        node: Any = _parsed(text)
    except (SyntaxError, ValueError):  # ValueError: a null byte, up to Python 3.11.3
        return None
    for name in attribute.split("."):
        node = _definition(node.body, name)
        if node is None:
            return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return "\n".join(line.rstrip() for line in lines)


@lru_cache(maxsize=1)
def _parsed(text: str) -> ast.Module:
    """Cached for the last file: several patches have targets in the same one."""
    return ast.parse(text)


def _definition(body: list[ast.stmt], name: str) -> Optional[Union[_FunctionNode, ast.ClassDef]]:
    found = None
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                found = node  # the last one wins, as at run time (typing overloads come first)
        elif isinstance(node, (ast.If, ast.Try)):
            found = _definition([*node.body, *node.orelse], name) or found
    return found


@lru_cache(maxsize=None)
def _signatures_in(path: str, modified: int, size: int) -> dict[str, str]:
    """Of a file in the state that its time and size stand for. Cached: many patches call functions of the same file."""
    with open(path, "rb") as file:
        return signatures(file.read().decode("utf-8", errors="replace"))


@lru_cache(maxsize=1)
def signatures(text: str) -> dict[str, str]:
    """How each function of a module is called, ``{"Trainer.fit": "(self, model, train_dataloaders=)"}``; a class is
    ``"class"``, since it is asked for by name."""
    found: dict[str, str] = {}
    try:
        _collect(_parsed(text).body, "", found)
    except (SyntaxError, ValueError):
        return {}
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, str]) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[prefix + node.name] = "class"
            _collect(node.body, f"{prefix}{node.name}.", found)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[prefix + node.name] = _signature(node)  # the last one wins, as at run time
        elif isinstance(node, (ast.If, ast.Try)):
            _collect([*node.body, *node.orelse], prefix, found)


def _signature(node: _FunctionNode) -> str:
    """``"@staticmethod (value, scale=, *, strict=)"``: what a caller has to know, and no annotations or defaults."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    parts = [argument.arg + "=" * (index >= required) for index, argument in enumerate(positional)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg is not None:
        parts.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        parts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        parts.append(argument.arg + "=" * (default is not None))
    if arguments.kwarg is not None:
        parts.append(f"**{arguments.kwarg.arg}")
    kinds = [f"@{name} " for name in map(_name, node.decorator_list) if name in _KINDS]
    return f"{''.join(kinds)}({', '.join(parts)})"


def _name(decorator: ast.expr) -> str:
    return decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")


@lru_cache(maxsize=None)
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(pkgutil.get_data(__package__, DATA_FILE) or b"")
    return data


@lru_cache(maxsize=None)
def _with_file(namespace: str, module: str, digest: str) -> frozenset[str]:
    """The releases that ship this file."""
    return _releases(_data()["files"].get(namespace, {}).get(module, {}).get(digest, []))


@lru_cache(maxsize=None)
def _with_function(location: str, digest: str) -> frozenset[str]:
    """The releases that have this code at a location."""
    return _releases(_data()["functions"].get(location, {}).get(digest, []))


def _releases(spans: list[list[int]]) -> frozenset[str]:
    if not spans:
        return frozenset()
    data = _data()
    releases = [*data["releases"], *data.get("releases_1x", [])]
    return frozenset().union(*(releases[first : last + 1] for first, last in spans))
