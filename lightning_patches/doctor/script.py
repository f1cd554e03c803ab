"""What can be told from a training script without running it."""

from __future__ import annotations

import ast
import re
from typing import Iterable, Iterator, List, NamedTuple, Tuple

Place = Tuple[str, int, str]
"""Kind, line and text."""

TOUCHES_CUDA = "touches-cuda"
FORKS = "forks"
FILE_RENDEZVOUS = "file-rendezvous"
PATCHED = "patched"
UNPATCHED = "unpatched"
USED = "used"
LATE = "late"
REMOVABLE = "removable"
IMPORT = "import lightning_patches  # noqa: F401  # isort: skip"
"""The import that linters and formatters leave where it is."""

_TOUCHING = re.compile(
    r"torch\.cuda\.(?!is_available$|device_count$|manual_seed(?:_all)?$|amp\.|is_initialized$|Stream$|Event$)\w+"
)
_FORKING = ("ddp_fork", "ddp_notebook")
_STARTS = ("Trainer", "Fabric")
_SHOWN, _LONGEST, _PARTS = 20, 400, 10
"""Lines and bytes of a place that are shown, and the parts of a name that are looked at."""
_OURS = ("lightning_patches",)
_LIGHTNINGS = ("lightning", "pytorch_lightning", "lightning_fabric")


def look_through(source: bytes) -> Iterator[Place]:
    """Each remarkable place.

    ``TOUCHES_CUDA`` is reported for what the script does by itself, outside of functions and classes, before it makes
    its first Trainer or Fabric; ``PATCHED`` if it imports ``lightning_patches``, whatever happens, before Lightning;
    ``USED`` if it does so below Lightning, and makes use of it; ``UNPATCHED`` if it imports Lightning, and nowhere
    ``lightning_patches``. Of an import that the script does not use, ``LATE`` if it stands below Lightning, and
    ``REMOVABLE`` if linters delete it or formatters move it.

    Raises:
        SyntaxError: it is not Python, or ``ValueError``; a notebook is not, although Python takes its JSON.
        RecursionError: its expressions are too deep for Python itself, or ``MemoryError``.
    """
    if source.lstrip().startswith(b"{"):
        raise SyntaxError("a notebook is no script: give what `jupyter nbconvert --to script` makes of it")
    tree = ast.parse(source)
    lines = source.splitlines()
    yield from _about_our_import(tree, lines)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    started = min((call.lineno for call in calls if _starts(call)), default=1 << 30)
    for node in _outside(tree):
        if isinstance(node, ast.Call) and node.lineno < started and _touches_cuda(node):
            yield TOUCHES_CUDA, node.lineno, _text(lines, node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in ("strategy", "start_method") and value in (*_FORKING, "fork"):
                    yield FORKS, node.lineno, f"{keyword.arg}={value!r}"
            if _name(node.func).endswith("set_start_method") and node.args:
                method = node.args[0]
                if isinstance(method, ast.Constant) and method.value == "fork":
                    yield FORKS, node.lineno, _text(lines, node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("file:///"):
            yield FILE_RENDEZVOUS, node.lineno, node.value


def _about_our_import(tree: ast.Module, lines: list[bytes]) -> Iterator[Place]:
    ours = min(_imports(_always(tree), _OURS), default=None)
    theirs = min(_imports(_outside(tree), _LIGHTNINGS), default=None)
    if ours is None:
        if theirs is not None and not any(_imports(ast.walk(tree), _OURS)):
            yield UNPATCHED, theirs.line, f"imports Lightning in line {theirs.line}, and lightning_patches nowhere"
        return
    if theirs is None or ours < theirs:
        yield PATCHED, ours.line, _OURS[0]
    if theirs is None:
        return
    if any(isinstance(node, ast.Name) and node.id in ours.names for node in ast.walk(tree)):
        if ours > theirs:
            yield USED, ours.line, _OURS[0]
        return
    what = f"imports lightning_patches in line {ours.line}"
    if ours > theirs:
        yield LATE, ours.line, f"{what}, below Lightning in line {theirs.line}"
    comments = b"\n".join(lines[ours.line - 1 : ours.last]).decode("utf-8", "replace")
    missing = [] if re.search(r"#.*\bnoqa\b(?!:)|#.*\bnoqa:.*\bF401\b", comments, re.I) else ["`# noqa: F401`"]
    is_skipped = re.search(r"isort:\s*skip\b", comments) or re.search(
        rb"isort:\s*(off|split|skip_file)\b", b"\n".join(lines)
    )
    if not is_skipped and any(node.lineno == ours.line for node in tree.body):
        missing.append("`# isort: skip`")
    if missing:
        yield REMOVABLE, ours.line, f"{what} without {' and '.join(missing)}"


def _text(lines: list[bytes], node: ast.expr) -> str:
    """The node as it stands in the script, in one line, the beginning of it at least."""
    last = node.end_lineno or node.lineno
    part = lines[node.lineno - 1 : last][:_SHOWN]
    if last - node.lineno < _SHOWN:
        part[-1] = part[-1][: node.end_col_offset]
    part[0] = part[0][node.col_offset :]
    return " ".join(b" ".join(part)[:_LONGEST].decode("utf-8", "replace").split())


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run when the script does, and not when something in it is called."""
    left = [node]
    while left:
        children = [
            child
            for child in ast.iter_child_nodes(left.pop())
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
        ]
        yield from children
        left += reversed(children)


def _always(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements that run under no condition, and what is tried."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.Try):
            yield from node.body


class _Import(NamedTuple):
    """Where one stands, and the names that it binds."""

    line: int
    column: int
    last: int
    names: List[str]


def _imports(nodes: Iterable[ast.AST], packages: tuple[str, ...]) -> Iterator[_Import]:
    """Each import of one of these packages, or of something in them."""
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [(alias.name, [alias.asname or alias.name.partition(".")[0]]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [(node.module, [alias.asname or alias.name for alias in node.names])]
        else:
            continue
        for place, (name, bound) in enumerate(found):
            if name.partition(".")[0] in packages:
                yield _Import(node.lineno, node.col_offset + place, node.end_lineno or node.lineno, bound)


def _starts(call: ast.Call) -> bool:
    return _name(call.func).rpartition(".")[2] in _STARTS


def _touches_cuda(call: ast.Call) -> bool:
    name = _name(call.func)
    if _TOUCHING.fullmatch(name) or name.endswith(".cuda"):
        return True
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    texts = [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    moves = name.endswith(".to") or any(keyword.arg == "device" for keyword in call.keywords)
    return moves and any(re.fullmatch(r"cuda(?::\d+)?", text) for text in texts)


def _name(node: ast.AST) -> str:
    """``"torch.cuda.synchronize"``, of which the end is enough where it has many parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _PARTS:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))
