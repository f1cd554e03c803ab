"""Convert modules of this package to files that a diff adds to a fork, and that do not need the package.

If upstream has not fixed a bug completely, the fix may need much code, which ``lightning_patches`` already has. The
diff's header names the module that a fork needs (``Carries: patches/devices/align_devices.py as
fabric/utilities/align_devices.py``). The diff itself only puts the decorator ``corrected`` of that file on the fixed
function or class. The file is generated when the diff is read, so it can't differ from the module.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from lightning_patches.engine.hunks import Changes, Hunk

PACKAGE = Path(__file__).resolve().parents[1]

PRELUDE = '''\
class LightningPatchesWarning(UserWarning):
    """Something that the user should change in the script."""


class notices:
    """Warnings of this file: once per key and process."""

    said = set()

    @staticmethod
    def rank():
        import torch

        distributed = torch.distributed
        return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0

    @classmethod
    def warn_once(cls, key, message, all_ranks=False, stacklevel=3):
        if key not in cls.said:
            cls.said.add(key)
            if all_ranks or cls.rank() == 0:
                warnings.warn(message, LightningPatchesWarning, stacklevel=stacklevel)

    @classmethod
    def report_misuse(cls, key, message):
        cls.warn_once(key, f"[rank {cls.rank()}] {message}", all_ranks=True, stacklevel=4)


_PARTS = {"pytorch": "lightning.pytorch", "fabric": "lightning.fabric"}
ROOT_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")


def module_name(namespace, module):
    part, dot, rest = module.partition(".")
    return _PARTS[part] + dot + rest


def upstream_module(namespace, module):
    return importlib.import_module(module_name(namespace, module))


def stock_of(function):
    return inspect.unwrap(function)


def home_of(function):
    return str(function.__globals__.get("__name__", "")) if type(function) is types.FunctionType else ""
'''

EPILOGUE = '''\
def corrected(target):
    """Apply the corrections of this file to a class or a function."""
    if not isinstance(target, type):
        return functools.wraps(target)(_CORRECTIONS[target.__name__](target, ""))
    for attribute, build in _CORRECTIONS[target.__name__].items():
        original = vars(target).get(attribute)
        if original is not None:
            setattr(target, attribute, functools.wraps(original)(build(original, "")))
    return target
'''


def files(name: str, fields: list[str]) -> Changes:
    """Generate the files that a diff adds.

    Args:
        name: name of the patch.
        fields: values of the header field ``Carries``, ``"trust.py as pytorch/utilities/checkpoint_trust.py"``. A range
            of releases may follow.

    Raises:
        ValueError: a field is malformed.
    """
    found = []
    for value in fields:
        match = re.fullmatch(r"(\S+\.py) as (\S+\.py)(?: ([<>=]\S+))?", value)
        if match is None:
            raise ValueError(f"Carries: {value!r} is not 'SOURCE.py as TARGET.py', or with a range of releases")
        found.append((match.group(1), match.group(2), match.group(3) or ""))
    changes = []
    for source, target, releases in found:
        modules = {other[:-3].replace("/", "."): path for other, path, range_ in found if range_ in ("", releases)}
        lines = tuple(("+", line) for line in _render(name, source, modules))
        changes.append((target, (Hunk("", lines, releases),)))
    return tuple(changes)


@dataclass
class _Module:
    """The parts of a ``lightning_patches`` module that a diff carries.

    Args:
        text: the module's source.
        tree: its syntax tree.
        doc: lines of its docstring.
        imports: lines with imports from other packages, ``import x`` and ``from x import y``.
        carried: lines with imports of other carried files.
        needs_prelude: True if the module uses modules of this package that ``PRELUDE`` replaces.
        record: the assignment of ``PATCH``, if there is one.
        body: all other lines.
    """

    text: str
    tree: ast.Module
    doc: list[str] = field(default_factory=list)
    imports: tuple[set[str], list[str]] = field(default_factory=lambda: (set(), []))
    carried: list[str] = field(default_factory=list)
    needs_prelude: bool = False
    record: Optional[ast.Assign] = None
    body: list[str] = field(default_factory=list)


def _split(source: str, modules: dict[str, str]) -> _Module:
    text = (PACKAGE / source).read_text(encoding="utf-8")
    lines, module = text.splitlines(), _Module(text, ast.parse(text))
    plain, from_imports = module.imports
    left_out: set[int] = set()
    first_code = len(lines)
    for node in module.tree.body:
        span = range(node.lineno - 1, node.end_lineno or node.lineno)
        own = [lines[number] for number in span]
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lightning_patches":
            left_out.update(span)
            _translate_import(module, source, node, modules)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PATCH":
            left_out.update(span)
            module.record = node
        elif isinstance(node, ast.Import):
            plain.update(own)
        elif isinstance(node, ast.ImportFrom):
            from_imports += own if node.module != "__future__" else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            module.doc = module.doc or own
        else:
            first_code = min(first_code, node.lineno - 1)
    for inner in ast.walk(module.tree):  # also imports inside functions
        if not isinstance(inner, ast.ImportFrom) or not inner.col_offset:
            continue
        if (inner.module or "").startswith("lightning_patches"):
            left_out.update(range(inner.lineno - 1, inner.end_lineno or inner.lineno))
            _translate_import(module, source, inner, modules)
    module.body = [line for number, line in enumerate(lines) if number >= first_code and number not in left_out]
    return module


def _translate_import(module: _Module, source: str, node: ast.ImportFrom, modules: dict[str, str]) -> None:
    """Replace an import from this package by an import of another carried file or by the prelude, or drop it."""
    home = (node.module or "").partition(".")[2]
    for alias in node.names:
        inner = f"{home}.{alias.name}".strip(".")
        if inner in modules:
            package, _, file = modules[inner][:-3].replace("/", ".").rpartition(".")
            called = alias.asname or alias.name
            module.carried.append(f"from lightning.{package} import {file}" + f" as {called}" * (called != file))
        elif home in modules:
            package = modules[home][:-3].replace("/", ".")
            called = f" as {alias.asname}" if alias.asname else ""
            module.carried.append(f"from lightning.{package} import {alias.name}{called}")
        elif inner == "notices" or home in ("engine.distributions", "engine.functions"):
            module.needs_prelude = True
        elif home != "patch":
            raise ValueError(f"{source} needs lightning_patches.{inner}, which the diff does not carry")


def _render(name: str, source: str, modules: dict[str, str]) -> list[str]:
    module = _split(source, modules)
    plain, from_imports = module.imports
    corrections = _corrections(module.record, module) if module.record is not None else ""
    if corrections:
        plain.add("import functools")
    if module.needs_prelude:
        plain.update(("import importlib", "import inspect", "import types", "import warnings"))
    head = [*module.doc, "", "from __future__ import annotations", "", *sorted(plain), *from_imports]
    head += ["", *dict.fromkeys(module.carried)] if module.carried else []
    parts = [
        [f"# lightning-patches: {name}", f"# Carried over from lightning_patches/{source}; not to be edited here."],
        [*head, ""],
    ]
    if module.needs_prelude:
        parts.append(["", *PRELUDE.splitlines(), ""])
    parts.append(["", *_stripped(module.body)])
    if corrections:
        parts.append(["", "", *corrections.splitlines(), "", "", *EPILOGUE.splitlines()])
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join("\n".join(part) for part in parts)).splitlines()


def _stripped(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").splitlines()


def _corrections(assignment: ast.Assign, module: _Module) -> str:
    """Return the source of the tables that ``corrected`` uses, from the targets of the patch's record."""
    constants = {
        node.targets[0].id: node.value.value
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    table: dict[str, dict[str, str] | str] = {}
    fields = {keyword.arg: keyword.value for keyword in assignment.value.keywords}  # type: ignore[attr-defined]
    for target in fields["targets"].elts:
        location = eval(compile(ast.Expression(target.args[0]), "record", "eval"), {"__builtins__": {}}, constants)
        build = str(ast.get_source_segment(module.text, target.args[1]))
        owner, _, attribute = location.partition(":")[2].rpartition(".")
        if owner:
            table.setdefault(owner, {})[attribute] = build  # type: ignore[index]
        else:
            table[attribute] = build
    lines = ["_CORRECTIONS = {"]
    for owner, value in table.items():
        if isinstance(value, str):
            lines.append(f'    "{owner}": {value},')
            continue
        lines.append(f'    "{owner}": {{')
        lines += [f'        "{attribute}": {build},' for attribute, build in value.items()]
        lines.append("    },")
    return "\n".join([*lines, "}"])
