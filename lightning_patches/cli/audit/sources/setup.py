"""Read the requirements in setup.py, setup.cfg and tox.ini.

A setup.py is not run. Its literal lists are read, and the requirements files that it names.
"""

from __future__ import annotations

import ast
import configparser
import re
import warnings
from collections import defaultdict
from typing import Any, Iterator, Tuple

from lightning_patches.cli import _files
from lightning_patches.cli.audit.requirements import lines_of, parse_requirement, starts_with_lightning
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Gap, Group, Include, Item, Source, Spec
from lightning_patches.cli.audit.sources.lines import read_pip_line

Text = Tuple[str, int, Group]
"""A text with requirements, its line, and its extra."""


MAX_NODES = 100_000
"""Most parts of expressions that are read in one script. Lists may name each other."""
_REQUIRES = ("install_requires", "extras_require")


def read_setup_py(source: Source) -> Iterator[Item]:
    try:
        script = _Script(_parsed(source.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for number, name, _ in lines_of(_files.lines(source.text)):
            yield Gap(f"{source.path}, line {number},", f"names {name}, and was not read")
        return
    found = [*script.requirements()]
    for text, line, group in found:
        for part in text.splitlines():
            yield from read_pip_line(part.strip(), line, source, group)
    if script.is_whole:
        return
    names = tuple(name for name in script.texts if _REQUIREMENTS_FILE.fullmatch(name))
    folders = ("", "requirements/")
    files = list(
        source.place.existing(source.beside("."), tuple(folder + name for folder in folders for name in names))
    )
    yield from (Include(path, source.place, is_requirements_file=True) for path in files)
    known = {text for text, *_ in found}
    for text, line in script.texts.items() if not files else ():
        name = text.rstrip("=<>~! ")  # f"lightning=={version}"
        requirement = parse_requirement(name) if starts_with_lightning(text) and text not in known else None
        # "lightning" may be the name of an extra.
        if requirement and (requirement.specifier or name != text or "pytorch" in text):
            yield Gap(f"{source.path}, line {line},", f"names {requirement.name}, and was not read")


def _parsed(text: str) -> ast.Module:
    if len(text) > _files.MAX_SCRIPT:
        raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escape sequences in strings
        return ast.parse(text)


class _Script:
    """The literal lists of a setup.py."""

    def __init__(self, tree: ast.Module) -> None:
        self.is_whole = True
        """False if some requirements are not literal."""
        self.texts: dict[str, int] = {}
        """The strings that may be requirements, with their lines."""
        self._values: dict[str, list[ast.expr]] = defaultdict(list)
        self._arguments: list[ast.keyword] = []
        self._nodes_left = MAX_NODES
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Call):
                self._read_call(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    variable = target.value if isinstance(target, ast.Subscript) else target
                    self._values[getattr(variable, "id", "")].append(node.value)
        others = [one.value for one in self._arguments if one.arg not in (None, *_REQUIRES)]
        ignored = {id(node) for one in others for node in ast.walk(one)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
                self.texts.setdefault(node.value, node.lineno)

    def _read_call(self, node: ast.Call) -> None:
        function = node.func
        if getattr(function, "id", getattr(function, "attr", "")) == "setup":
            self._arguments += node.keywords
        elif isinstance(function, ast.Attribute) and function.attr in _CHANGES:
            self._values[getattr(function.value, "id", "")] += node.args[-1:]

    def requirements(self) -> Iterator[Text]:
        for argument in self._arguments:
            yield from self._requirements_of(argument.arg, argument.value)

    def _requirements_of(self, name: Any, value: ast.expr) -> Iterator[Text]:
        """Yield the requirements of one argument of ``setup()``; for ``**arguments``, those of a dictionary."""
        if name is None:
            for one in self._values.get(getattr(value, "id", ""), [value]):
                pairs = zip(one.keys, one.values) if isinstance(one, ast.Dict) else ()
                for key, inner in pairs:
                    yield from self._requirements_of(getattr(key, "value", ""), inner)
                for keyword in one.keywords if isinstance(one, ast.Call) else ():  # dict(install_requires=[...])
                    yield from self._requirements_of(keyword.arg or "", keyword.value)
        elif name in _REQUIRES:
            yield from self._texts(value, 0)
        elif name == "python_requires" and isinstance(value, ast.Constant):
            yield f"python{value.value!s}", value.lineno, ()

    def _texts(self, node: ast.expr, depth: int, group: Group = ()) -> Iterator[Text]:
        """Yield the strings of an expression."""
        self._nodes_left -= 1
        if isinstance(node, ast.Constant):
            yield from [(node.value, node.lineno, group)] if isinstance(node.value, str) else []
        elif depth > _files.MAX_DEPTH or self._nodes_left < 0:
            self.is_whole = False
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                extra = getattr(key, "value", "")
                yield from self._texts(value, depth + 1, (f"[{extra}]",) if extra and isinstance(extra, str) else group)
        else:
            for part in self._parts(node):
                yield from self._texts(part, depth + 1, group)

    def _parts(self, node: ast.expr) -> list[ast.expr]:
        """Return the expressions that an expression combines."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return node.elts
        if isinstance(node, ast.Name) and node.id in self._values:
            return self._values[node.id]
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr)):
            return [node.left, node.right]
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, (ast.Starred, ast.Subscript)):
            return [node.value]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _COLLECTIONS:
            return [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SPLITS:
            return [node.func.value]
        self.is_whole = False
        return []


_REQUIREMENTS_FILE = re.compile(r"[\w./-]*(?:req|dep|constraint)[\w./-]{0,99}\.(?:txt|in)", re.IGNORECASE)
_CHANGES = ("append", "extend", "insert", "update")
_COLLECTIONS = ("list", "tuple", "set", "sorted", "dict")
_SPLITS = ("split", "splitlines", "strip", "copy", "values")


def read_ini(source: Source) -> Iterator[Item]:
    """Read setup.cfg or tox.ini."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(source.text)
    except configparser.Error as error:
        raise _files.MalformedError(f"it is not valid: {type(error).__name__}") from None
    shell = Shell(source, Checkout(source.place, source.directory))
    for section in parser.sections():
        for name, value in parser.items(section):
            group = (f"[{section}]",) if section.startswith("testenv") else ()
            lines = [_FACTORS.sub("", line).replace("{toxinidir}/", "") for line in (value or "").splitlines()]
            if (section, name) == ("options", "install_requires") or section == "options.extras_require":
                yield from _read_requires(lines, source, () if section == "options" else (f"[{name}]",))
            elif section.startswith("testenv") and name == "deps":
                yield from _read_requires(lines, source, group)
            elif section.startswith("testenv") and name.startswith("commands"):
                for line in lines:
                    yield from shell.read(line, 1)


_FACTORS = re.compile(r"^[\w{},.!-]{1,200}:\s+")
"""tox: the environments in which a line counts."""


def _read_requires(lines: list[str], source: Source, group: Group) -> Iterator[Item]:
    for line in lines:
        files = re.fullmatch(r"file:(.*)", line.strip())
        for name in files[1].split(",") if files else ():
            yield Include(source.beside(name.strip()), source.place, group=group, is_requirements_file=True)
        for item in read_pip_line(line.strip(), 0, source, group) if not files else ():
            yield item._replace(written=line.strip()) if isinstance(item, Spec) else item
