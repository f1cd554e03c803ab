"""Helpers that a diff carries into the fork: modules of this package, made independent of it.

Where the bug was never fixed upstream, or only in part, mending it takes more than a few lines, and those lines are
already written and tested in ``lightning_patches``. The diff then adds them as a file of their own (header field
``Carries: patches/tuner.py as fabric/utilities/finder_clean_up.py``) and puts the decorator ``corrected`` from that
file on what it corrects. The added file is generated, so the two cannot drift apart: a test compares them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "lightning_patches"
DROPPED = {"patch", "distributions"}

PRELUDE = '''\
class LightningPatchesWarning(UserWarning):
    """Something that the user should change in the script."""


class _runtime:
    """How this file speaks to the user: once per key and process."""

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
'''

EPILOGUE = '''\
def corrected(target):
    """Put the corrections of this file on a class or a function."""
    if not isinstance(target, type):
        return functools.wraps(target)(_CORRECTIONS[target.__name__](target, ""))
    for attribute, build in _CORRECTIONS[target.__name__].items():
        original = vars(target).get(attribute)
        if original is not None:
            setattr(target, attribute, functools.wraps(original)(build(original, "")))
        elif attribute in _ADDED:
            setattr(target, attribute, build(None, ""))
    return target
'''


def files(name: str, fields: list[str]) -> dict[str, list[str]]:
    """The files that a diff carries.

    Args:
        name: the patch.
        fields: values of the header field ``Carries``, ``"gradient_sync.py as fabric/utilities/gradient_sync.py"``.

    Returns:
        Lines of each file, by its path in upstream's source tree.

    Raises:
        ValueError: a field is malformed.
    """
    pairs = []
    for field in fields:
        match = re.fullmatch(r"(\S+\.py) as (\S+\.py)", field)
        if match is None:
            raise ValueError(f"Carries: {field!r} is not 'SOURCE.py as TARGET.py'")
        pairs.append((match.group(1), match.group(2)))
    modules = {source[:-3].replace("/", "."): target for source, target in pairs}
    return {target: _render(name, source, modules) for source, target in pairs}


def _render(name: str, source: str, modules: dict[str, str]) -> list[str]:
    text = (PACKAGE / source).read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    dropped: set[int] = set()
    imports: list[str] = []
    corrections = ""
    first_code = len(lines)
    needs_prelude = False
    doc: list[str] = []
    plain: set[str] = set()
    froms: list[str] = []
    for node in tree.body:
        span = range(node.lineno - 1, node.end_lineno or node.lineno)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lightning_patches":
            dropped.update(span)
            home = (node.module or "").partition(".")[2]
            for alias in node.names:
                inner = f"{home}.{alias.name}".strip(".")
                if inner in modules:
                    package, _, module = modules[inner][:-3].replace("/", ".").rpartition(".")
                    imports.append(f"from lightning.{package} import {module}")
                elif inner == "_runtime" or home == "distributions":
                    needs_prelude = True
                elif home != "patch":
                    raise ValueError(f"{source} needs lightning_patches.{inner}, which the diff does not carry")
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PATCHES":
            dropped.update(span)
            corrections = _corrections(name, node, tree)
        elif isinstance(node, ast.Import):
            plain.update(lines[number] for number in span)
        elif isinstance(node, ast.ImportFrom):
            froms += [lines[number] for number in span] if node.module != "__future__" else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            doc = doc or [lines[number] for number in span]
        else:
            first_code = min(first_code, node.lineno - 1)
    body = [line for number, line in enumerate(lines) if number >= first_code and number not in dropped]
    if corrections:
        plain.add("import functools")
    if needs_prelude:
        plain.add("import warnings")
    head = [*doc, "", "from __future__ import annotations", "", *sorted(plain), *froms]
    head += ["", *imports] if imports else []
    head.append("")
    parts = [
        [f"# lightning-patches: {name}", f"# Carried over from lightning_patches/{source}; not to be edited here."],
        head,
    ]
    if needs_prelude:
        parts.append(["", *PRELUDE.splitlines(), ""])
    parts.append(["", *_stripped(body)])
    if corrections:
        parts.append(["", "", *corrections.splitlines(), "", "", *EPILOGUE.splitlines()])
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join("\n".join(part) for part in parts)).splitlines()


def _stripped(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").splitlines()


def _corrections(name: str, assignment: ast.Assign, tree: ast.Module) -> str:
    """The table behind ``corrected``, from the targets of the patch's record."""
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    table: dict[str, dict[str, str] | str] = {}
    added = []
    for call in ast.walk(assignment.value):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Patch"):
            continue
        fields = {keyword.arg: keyword.value for keyword in call.keywords}
        if ast.literal_eval(fields["name"]) != name:
            continue
        for target in fields["targets"].elts:  # type: ignore[attr-defined]
            location = eval(compile(ast.Expression(target.args[0]), "record", "eval"), {"__builtins__": {}}, constants)
            build = ast.unparse(target.args[1])
            owner, _, attribute = location.partition(":")[2].rpartition(".")
            if owner:
                table.setdefault(owner, {})[attribute] = build  # type: ignore[index]
            else:
                table[attribute] = build
            if any(keyword.arg == "adds" for keyword in target.keywords):
                added.append(attribute)
    lines = ["_CORRECTIONS = {"]
    for owner, value in table.items():
        if isinstance(value, str):
            lines.append(f'    "{owner}": {value},')
            continue
        lines.append(f'    "{owner}": {{')
        lines += [f'        "{attribute}": {build},' for attribute, build in value.items()]
        lines.append("    },")
    names = ", ".join(f'"{attribute}"' for attribute in added)
    return "\n".join([*lines, "}", f"_ADDED = [{names}]"])
