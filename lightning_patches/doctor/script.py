"""Read a training script without running it."""

from __future__ import annotations

import ast
import re
from typing import Iterable, Iterator, List, NamedTuple, Optional, Tuple

Place = Tuple[str, int, str]
"""A place in a script that matters to a check: its kind (see :func:`look_through`), its line and a text."""

TOUCHES_CUDA = "touches-cuda"
FORKS = "forks"
FILE_RENDEZVOUS = "file-rendezvous"
PATCHED = "patched"
UNPATCHED = "unpatched"
USED = "used"
LATE = "late"
REMOVABLE = "removable"
LAZY = "lazy"
UNGUARDED = "unguarded"
UNPICKLABLE = "unpicklable"
IMPORT = "import lightning_patches  # noqa: F401  # isort: skip"
"""The import that linters and formatters leave unchanged."""

_TOUCHING = re.compile(
    r"torch\.cuda\.(?!is_available$|device_count$|manual_seed(?:_all)?$|amp\.|is_initialized$|Stream$|Event$)\w+"
)
_FORKING = ("ddp_fork", "ddp_notebook")
_STARTS = ("Trainer", "Fabric")
_RUNS = ("fit", "validate", "test", "predict")
_LAZY_STATEMENT = re.compile(rb"(^|;)([ \t\f]*)lazy[ \t]+(?=(?:import|from)\b)", re.M)
_MAX_LINES, _MAX_BYTES, _MAX_PARTS = 20, 400, 10
"""Limits for the shown source (lines and bytes), and for the parts of a dotted name."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_OUR_PACKAGES = ("lightning_patches",)
_LIGHTNINGS = ("lightning", "pytorch_lightning", "lightning_fabric")


def parse(source: bytes) -> ast.Module:
    """Parse a script. The lazy imports of Python 3.15 can be parsed by every Python.

    Returns:
        The tree. Lazy imports have ``is_lazy`` set, as in the ``ast`` of Python 3.15.

    Raises:
        SyntaxError, ValueError: the source is not Python.
        RecursionError, MemoryError: its expressions are too deep for Python.
    """
    tree = ast.parse(_LAZY_STATEMENT.sub(rb"\1\2", source))
    lazy_lines = {source.count(b"\n", 0, match.end()) + 1 for match in _LAZY_STATEMENT.finditer(source)}
    for node in _executed_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node.lineno in lazy_lines:
            node.is_lazy = 1  # type: ignore[union-attr]
    return tree


def look_through(source: bytes, start_method: str = "fork") -> Iterator[Place]:
    """Yield the places that matter to a check. "The import" below is that of ``lightning_patches``.

    - ``TOUCHES_CUDA``: a top-level statement uses CUDA before the first Trainer or Fabric is created
    - ``FORKS``: the script selects a strategy or start method that forks
    - ``FILE_RENDEZVOUS``: a string is the URL of a file
    - ``PATCHED``: the import is unconditional, and above the imports of Lightning
    - ``USED``: the import is below the imports of Lightning or lazy, but the script uses the package
    - ``UNPATCHED``: the script imports Lightning but not ``lightning_patches``
    - ``LATE``: the import is unused, and below the imports of Lightning
    - ``REMOVABLE``: the import is unused, and linters delete it or formatters move it
    - ``LAZY``: the import is unused and lazy, so that Python 3.15 never executes it
    - ``UNGUARDED``: DataLoader workers that do not start by fork would import the script and train
    - ``UNPICKLABLE``: a function or dataset can't be pickled for such a worker

    Args:
        source: the source of the script.
        start_method: start method of :mod:`multiprocessing`, unless the script sets it.

    Raises:
        SyntaxError, ValueError: the source is not Python, or is a notebook.
        RecursionError, MemoryError: its expressions are too deep for Python.
    """
    if source.lstrip().startswith(b"{"):
        raise SyntaxError("this is a notebook: convert it with `jupyter nbconvert --to script`")
    tree = parse(source)
    lines = source.splitlines()
    yield from _import_places(tree, lines)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    started = min((call.lineno for call in calls if _creates_trainer(call)), default=1 << 30)
    for node in _executed_nodes(tree):
        if isinstance(node, ast.Call) and node.lineno < started and _touches_cuda(node):
            yield TOUCHES_CUDA, node.lineno, _text(lines, node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((FORKS, node.lineno, how) for how in _forks(node, lines))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("file:///"):
            yield FILE_RENDEZVOUS, node.lineno, node.value
    yield from _worker_places(tree, calls, start_method)


def _forks(call: ast.Call, lines: list[bytes]) -> Iterator[str]:
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in ("strategy", "start_method") and value in (*_FORKING, "fork"):
            yield f"{keyword.arg}={value!r}"
    method = call.args[0] if call.args and _name(call.func).endswith("set_start_method") else None
    if isinstance(method, ast.Constant) and method.value == "fork":
        yield _text(lines, call)


def _import_places(tree: ast.Module, lines: list[bytes]) -> Iterator[Place]:
    ours = min(_imports(_unconditional(tree), _OUR_PACKAGES), default=None)
    theirs = min(_imports(_executed_nodes(tree), _LIGHTNINGS), default=None)
    if ours is None:
        if theirs is not None and not any(_imports(ast.walk(tree), _OUR_PACKAGES)):
            yield UNPATCHED, theirs.line, f"imports Lightning in line {theirs.line}, and lightning_patches nowhere"
        return
    what = f"imports lightning_patches in line {ours.line}"
    is_lazy = ours.is_lazy or _makes_lazy(tree)
    is_used = any(isinstance(node, ast.Name) and node.id in ours.names for node in ast.walk(tree))
    if is_lazy and not is_used:
        yield LAZY, ours.line, f"{what} lazily"
        return
    is_early = not is_lazy and (theirs is None or ours < theirs)
    if is_early:
        yield PATCHED, ours.line, _OUR_PACKAGES[0]
    elif is_used:
        yield USED, ours.line, _OUR_PACKAGES[0]
    if theirs is None or is_used:
        return
    if not is_early:
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


def _makes_lazy(tree: ast.Module) -> bool:
    """True if ``__lazy_modules__`` lists our package, which makes a plain import lazy in Python 3.15."""
    return any(
        isinstance(node, ast.Assign)
        and any(_name(target) == "__lazy_modules__" for target in node.targets)
        and any(isinstance(part, ast.Constant) and part.value in _OUR_PACKAGES for part in ast.walk(node.value))
        for node in tree.body
    )


def _worker_places(tree: ast.Module, calls: list[ast.Call], start_method: str) -> Iterator[Place]:
    chosen = [call.args[0] for call in calls if call.args and _name(call.func).endswith("set_start_method")]
    default = next((node.value for node in chosen if isinstance(node, ast.Constant)), start_method)
    values, local = _assigned(tree), _local_names(tree)
    is_unguarded = _trains_when_imported(tree, values)

    def resolved(node: Optional[ast.expr]) -> Optional[ast.expr]:
        return values.get(_name(node), node) if isinstance(node, (ast.Name, ast.Attribute)) else node

    for call in calls:
        given = {keyword.arg: resolved(keyword.value) for keyword in call.keywords}
        workers, context = given.get("num_workers"), given.get("multiprocessing_context", ast.Constant(None))
        if not _name(call.func).endswith("DataLoader") or not isinstance(workers, ast.Constant) or not workers.value:
            continue
        if not isinstance(context, ast.Constant) or (context.value or default) not in ("spawn", "forkserver"):
            continue
        if is_unguarded:
            yield UNGUARDED, call.lineno, _name(call.func)
        for name in ("collate_fn", "worker_init_fn"):
            function = given.get(name)
            if isinstance(function, ast.Lambda):
                yield UNPICKLABLE, call.lineno, f"{name} is a lambda"
            elif isinstance(function, ast.Name) and function.id in local:
                yield UNPICKLABLE, call.lineno, f"{name} is {function.id}, which is defined in a function"
        dataset = resolved(call.args[0]) if call.args else given.get("dataset")
        if isinstance(dataset, ast.Call) and _name(dataset.func) in local:
            yield UNPICKLABLE, call.lineno, f"the dataset is a {_name(dataset.func)}, which is defined in a function"


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of variables that are assigned once: ``{"workers": ..., "self.train_set": ...}``."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.setdefault(_name(target), []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _local_names(tree: ast.Module) -> set[str]:
    """Return the names of functions and classes that are defined only in functions."""
    found = set()
    for function in ast.walk(tree):
        left: list[ast.AST] = list(function.body) if isinstance(function, _FUNCTIONS) else []
        while left:
            node = left.pop()
            if isinstance(node, _DEFINITIONS):
                found.add(node.name)
            else:
                left += ast.iter_child_nodes(node)
    return found - {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}


def _is_run(method: ast.expr, values: dict[str, ast.expr]) -> bool:
    """True for ``trainer.fit`` and similar methods, False for ``scaler.fit``."""
    if not isinstance(method, ast.Attribute) or method.attr not in _RUNS:
        return False
    name = _name(method.value)
    owner = values.get(name, method.value)
    return name.lower().endswith("trainer") or (isinstance(owner, ast.Call) and _creates_trainer(owner))


def _trains_when_imported(tree: ast.Module, values: dict[str, ast.expr]) -> bool:
    """True if the script trains outside of ``if __name__ == "__main__"``, directly or in a function that it calls."""
    functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and any(_name(part) == "__name__" for part in ast.walk(node.test)):
            left += node.orelse
            continue
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if name.endswith("LightningCLI") or _is_run(node.func, values):
                return True
            if name in functions:
                left += functions.pop(name).body
        left += _executed_children(node)
    return False


def _text(lines: list[bytes], node: ast.expr) -> str:
    """Return the source of a node in one line, or its beginning."""
    last = node.end_lineno or node.lineno
    part = lines[node.lineno - 1 : last][:_MAX_LINES]
    if last - node.lineno < _MAX_LINES:
        part[-1] = part[-1][: node.end_col_offset]
    part[0] = part[0][node.col_offset :]
    return " ".join(b" ".join(part)[:_MAX_BYTES].decode("utf-8", "replace").split())


def _executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with the script, outside of functions and classes."""
    left = [node]
    while left:
        children = _executed_children(left.pop())
        yield from children
        left += reversed(children)


def _executed_children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node that are not definitions of functions or classes."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, (*_DEFINITIONS, ast.Lambda))]


def _unconditional(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the unconditional statements, including the bodies of ``try``."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.Try):
            yield from node.body


class _Import(NamedTuple):
    """The place of an import, and the names that it binds."""

    line: int
    column: int
    last: int
    names: List[str]
    is_lazy: bool


def _imports(nodes: Iterable[ast.AST], packages: tuple[str, ...]) -> Iterator[_Import]:
    """Yield the imports of these packages and of their members."""
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [(alias.name, [alias.asname or alias.name.partition(".")[0]]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [(node.module, [alias.asname or alias.name for alias in node.names])]
        else:
            continue
        for place, (name, bound) in enumerate(found):
            if name.partition(".")[0] in packages:
                last, is_lazy = node.end_lineno or node.lineno, bool(getattr(node, "is_lazy", False))
                yield _Import(node.lineno, node.col_offset + place, last, bound, is_lazy)


def _creates_trainer(call: ast.Call) -> bool:
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
    """Return the dotted name, such as ``"torch.cuda.synchronize"``, or the end of a long name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MAX_PARTS:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))
