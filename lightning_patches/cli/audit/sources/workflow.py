"""Read the ``run`` lines of a workflow or an action of GitHub."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from typing import Any, Iterator, NamedTuple, Optional

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Item, Source
from lightning_patches.cli.audit.sources.lines import logical_lines, uses_patches

MAX_COMBINATIONS = 100
"""Most combinations of a matrix that are tried."""
_CHANGES = ("exclude", "include")
_EXPRESSION = re.compile(r"\$\{\{([^{}]*)\}\}")


def read_workflow(data: Any, source: Source) -> Iterator[Item]:
    """Read a workflow or an action of GitHub, or the jobs of CircleCI.

    Args:
        data: the parsed file.
        source: the file.
    """
    yield from uses_patches(source.text)
    place = Checkout(source.place, checkout_of(source.path) or source.place.root, source.directory)
    shell = Shell(source, place)
    for step in itertools.chain.from_iterable(steps for _, steps in _jobs(data)):
        options = _dict(step, "with")
        if "actions/checkout" in str(step.get("uses", "")) and "repository" in options:
            place.has_clones = True
        elif "actions/checkout" in str(step.get("uses", "")) and "path" in options:
            place.copies.add(posixpath.join("/", str(options["path"])))
    for run in dict.fromkeys(_runs(data)):  # YAML aliases may repeat a step many times
        shell.directory = "/"
        shell.directory = shell.path(run.directory)
        shell.variables = dict(run.variables)
        for number, line in logical_lines(_files.lines(run.text), run.line - 1):
            if not line.lstrip().startswith("#"):
                yield from shell.read(line, number)


class _Run(NamedTuple):
    """The commands of a step, for one combination of the matrix."""

    text: str
    line: int
    directory: str
    variables: tuple[tuple[str, str], ...]


def _jobs(data: Any) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the jobs with their steps."""
    known: set[int] = set()
    for job in [*_dict(data, "jobs").values(), *_dict(data, "commands").values(), data.get("runs")]:
        steps = job.get("steps") if isinstance(job, dict) else None
        if isinstance(steps, list) and id(steps) not in known:
            known.add(id(steps))
            yield job, [step for step in steps if isinstance(step, dict)]


def _runs(data: Any) -> Iterator[_Run]:
    for job, steps in _jobs(data):
        combinations = _combinations(_dict(job, "strategy", "matrix"))
        for step in steps:
            run = _dict(step, "run").get("command", step.get("run"))
            if not isinstance(run, _files.YamlText):
                continue
            places = [_dict(data, "defaults", "run"), _dict(job, "defaults", "run"), step]
            directory = next((str(one["working-directory"]) for one in places[::-1] if "working-directory" in one), "")
            variables = {**_dict(data, "env"), **_dict(job, "env"), **_dict(step, "env")}
            plain = tuple((name, value) for name, value in variables.items() if isinstance(value, str))
            for combination in combinations if "matrix." in run + directory + str(plain) else [{}]:
                known_values = {**{f"env.{name}": value for name, value in plain}, **combination}
                text, there = _expanded(run, known_values), _expanded(directory, known_values)
                yield _Run(text, run.line, there, tuple((name, _expanded(value, combination)) for name, value in plain))


def _dict(data: Any, *keys: str) -> dict[str, Any]:
    """Return a mapping in nested mappings; an empty one if it is missing or something else."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _combinations(matrix: dict[str, Any]) -> list[dict[str, str]]:
    """Return the values of the matrix for each job: ``{"matrix.python": "3.10"}``."""
    lists = {name: value for name, value in matrix.items() if isinstance(value, list) and name not in _CHANGES}
    product = itertools.islice(itertools.product(*lists.values()), MAX_COMBINATIONS)
    found = [_flat("matrix", dict(zip(lists, values))) for values in product]
    excluded, included = ([_flat("matrix", one) for one in matrix.get(key) or () if one] for key in _CHANGES)
    found = [one for one in found if not any(each.items() <= one.items() for each in excluded)]
    for more in included[:MAX_COMBINATIONS]:
        fitting = [one for one in found if all(one.get(name, value) == value for name, value in more.items())]
        for one in fitting:
            one.update(more)
        found += [] if fitting else [more]
    return found


def _flat(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {key: text for part, inner in value.items() for key, text in _flat(f"{name}.{part}", inner).items()}
    return {name: str(value)}


def _expanded(text: str, values: dict[str, str]) -> str:
    """Replace the expressions of a workflow: ``${{ matrix.python }}``. The unknown ones become ``$expression``."""
    return _EXPRESSION.sub(lambda found: values.get(found[1].strip(), "$expression"), text)


def checkout_of(path: str) -> Optional[str]:
    """Return the checkout in which a workflow or an action runs: the parent of the last ``.github``.

    Returns ``None`` for a file that is not below ``.github/workflows`` or ``.github/actions``.
    """
    for whole in (os.path.normpath(path), os.path.abspath(path)):
        parts = whole.split(os.sep)
        for index in reversed(range(len(parts) - 2)):
            if parts[index] == ".github" and parts[index + 1] in ("workflows", "actions"):
                return os.sep.join(parts[:index]) or (os.sep if os.path.isabs(whole) else ".")
    return None
