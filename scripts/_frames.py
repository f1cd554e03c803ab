"""Make ``lightning_patches/cli/diagnose/frames.json``: `diagnose` finds the release from the frames of a traceback.

scripts/renew makes it again after a new release, from the wheels of pytorch-lightning.
``lightning`` has the same lines.

For each function of the files that occur in tracebacks, the file has the function's first line in each release, the
lines that a frame can name, and six bits of the text of each of these lines.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Container

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _releases

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from lightning_patches.cli.diagnose.frames import ALPHABET, mark

DATA = ROOT / "lightning_patches" / "cli" / "diagnose" / "frames.json"
LARGEST = 150_000
OF_1X = ("pytorch/trainer/trainer.py", "pytorch/trainer/call.py", "pytorch/__init__.py")
"""Files that are also indexed for 1.x."""
FILES = (
    "pytorch/trainer/trainer.py", "pytorch/trainer/call.py", "pytorch/trainer/configuration_validator.py",
    "pytorch/trainer/connectors/accelerator_connector.py", "pytorch/trainer/connectors/callback_connector.py",
    "pytorch/trainer/connectors/checkpoint_connector.py", "pytorch/trainer/connectors/data_connector.py",
    "pytorch/trainer/connectors/logger_connector/logger_connector.py",
    "pytorch/trainer/connectors/logger_connector/result.py", "pytorch/loops/fit_loop.py",
    "pytorch/loops/training_epoch_loop.py", "pytorch/loops/evaluation_loop.py", "pytorch/loops/prediction_loop.py",
    "pytorch/loops/utilities.py", "pytorch/loops/fetchers.py", "pytorch/loops/optimization/automatic.py",
    "pytorch/loops/optimization/manual.py", "pytorch/loops/loop.py", "pytorch/core/module.py",
    "pytorch/core/optimizer.py", "pytorch/core/saving.py", "pytorch/core/hooks.py", "pytorch/strategies/strategy.py",
    "pytorch/strategies/ddp.py", "pytorch/strategies/fsdp.py", "pytorch/strategies/single_device.py",
    "pytorch/strategies/launchers/subprocess_script.py", "pytorch/strategies/launchers/multiprocessing.py",
    "pytorch/plugins/precision/precision.py", "pytorch/plugins/precision/precision_plugin.py",
    "pytorch/plugins/precision/amp.py", "pytorch/callbacks/model_checkpoint.py", "pytorch/callbacks/early_stopping.py",
    "pytorch/callbacks/lr_finder.py", "pytorch/callbacks/batch_size_finder.py", "pytorch/callbacks/finetuning.py",
    "pytorch/callbacks/progress/rich_progress.py", "pytorch/callbacks/progress/tqdm_progress.py",
    "pytorch/callbacks/stochastic_weight_avg.py", "pytorch/tuner/tuning.py", "pytorch/tuner/lr_finder.py",
    "pytorch/tuner/batch_size_scaling.py", "pytorch/utilities/combined_loader.py", "pytorch/utilities/data.py",
    "pytorch/utilities/parsing.py", "pytorch/utilities/model_helpers.py", "pytorch/utilities/exceptions.py",
    "pytorch/cli.py", "pytorch/__init__.py", "pytorch/utilities/argparse.py", "pytorch/profilers/profiler.py",
    "pytorch/utilities/imports.py", "pytorch/loggers/csv_logs.py", "pytorch/loggers/tensorboard.py", "fabric/fabric.py",
    "fabric/wrappers.py", "fabric/connector.py", "fabric/__init__.py", "fabric/utilities/cloud_io.py",
    "fabric/utilities/distributed.py", "fabric/utilities/data.py", "fabric/strategies/ddp.py",
    "fabric/loggers/csv_logs.py",
)  # fmt: skip


def functions(text: str) -> list[tuple[str, int, str]]:
    """Return name and first line of each function of a file, and its lines in frames as :func:`_body` writes them."""
    lines = text.splitlines()
    found = []
    tree = ast.parse(text)
    inner = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for child in ast.walk(node):
                if child is not node and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    inner[child] = node
    own = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    own = [node for node in own if not any(map(_is_property, node.decorator_list))]
    for node in own:
        nested = {child for child, parent in inner.items() if parent is node}
        numbers = sorted(set(_lines(node.body, nested)))
        found.append((node.name, node.lineno, _body(numbers, node.lineno, lines)))
    top = [one for one in tree.body if isinstance(one, (ast.Import, ast.ImportFrom, ast.Expr, ast.If, ast.Assign))]
    numbers = sorted({one.lineno for one in top if not isinstance(getattr(one, "value", None), ast.Constant)})
    found.append(("<module>", 1, _body(numbers, 1, lines)))
    return found


def _is_property(decorator: ast.expr) -> bool:
    return "property" in ast.dump(decorator) or "setter" in ast.dump(decorator)


_RAISES = (ast.Call, ast.Raise, ast.Assert, ast.Subscript, ast.Yield, ast.For, ast.With, ast.ImportFrom, ast.Compare)


def _lines(body: list[ast.stmt], nested: Container[ast.AST]) -> list[int]:
    found = []
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if node in nested:
            continue
        if isinstance(node, _RAISES):
            found.append(node.lineno)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found.append(node.func.end_lineno or node.lineno)
        todo.extend(ast.iter_child_nodes(node))
    return found


def _body(numbers: list[int], first: int, lines: list[str]) -> str:
    """``"3a7b"``: from each line to the next, in the alphabet's digits, and the mark of its text."""
    parts, last = [], first
    for number in numbers:
        distance = number - last
        while distance > len(ALPHABET) - 2:  # the last digit means a long distance without a line
            parts.append(ALPHABET[-1])
            distance -= len(ALPHABET) - 2
        parts.append(ALPHABET[distance] + mark(lines[number - 1]))
        last = number
    return "".join(parts)


def text(afresh: bool) -> str:
    """Return the text of the file. If it has all releases, return it unchanged, since reading them takes a minute."""
    versions = [*_releases.older_versions(), *_releases.versions("pytorch-lightning")]
    if not afresh and DATA.exists() and json.loads(DATA.read_text())["releases"] == versions:
        return DATA.read_text()
    readers = {version: _releases.reader("pytorch-lightning", version) for version in versions}
    files: dict[str, dict[str, list[str]]] = {}
    for name in FILES:
        places: dict[str, dict[tuple[int, str], list[int]]] = {}
        for index, version in enumerate(versions):
            if version.startswith("1.") and name not in OF_1X:
                continue
            path = name.replace("pytorch/", "pytorch_lightning/").replace("fabric/", "lightning_fabric/")
            source = readers[version](path)
            for function, first, body in functions(source) if source is not None else ():
                if body:
                    places.setdefault(function, {}).setdefault((first, body), []).append(index)
        files[name] = {}
        for function, found in sorted(places.items()):
            bodies = list(dict.fromkeys(body for _, body in found))
            rows = (_row(first, bodies.index(body), indices) for (first, body), indices in found.items())
            files[name][function] = [*bodies, "".join(rows)]
    lines = (f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'))}" for name, found in files.items())
    table = ",\n".join(lines)
    made = f'{{"releases": {json.dumps(versions)},\n"files": {{\n{table}\n}}}}\n'
    if len(made) > LARGEST:
        raise SystemExit(
            f"{DATA.name} would have {len(made)} bytes, and may have {LARGEST}: take out files or functions"
        )
    return made


def _row(first: int, body: int, indices: list[int]) -> str:
    """Six digits for each span of releases: the line (2), which body (1), the first release (2), how many follow."""
    spans: list[list[int]] = []
    for index in indices:
        if spans and spans[-1][1] == index - 1 and index - spans[-1][0] < len(ALPHABET):
            spans[-1][1] = index
        else:
            spans.append([index, index])
    numbers = [(*divmod(first, 64), body, *divmod(begin, 64), end - begin) for begin, end in spans]
    return "".join(ALPHABET[digit] for row in numbers for digit in row)
