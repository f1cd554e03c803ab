"""Programs, their runs on stock and with patches, and the verdict on each."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.differential import known_differences
from tests.support.preload import Preloaded
from tests.support.run import execute
from tests.support.variants import Variant, distribution_of, environment_of

HERE = Path(__file__).parent
TESTS = HERE.parent
CHILD = HERE / "child.py"
LIMIT = 90.0
"""Seconds after which a process is taken for one that hangs."""
AT = range(60)
HOW = ("mock", "wrapt", "checker", "plain")
KINDS: dict[str, dict[str, Any]] = {
    "overridden": {}, "any arguments": {}, "fewer arguments": {"at": AT}, "properties": {},
    "raises": {"at": AT, "time": (1, 1, 1, 2, 3)}, "does nothing": {"at": AT}, "replaced on the object": {"at": AT},
    "lends weights": {"at": range(5)}, "wraps": {"what": ("torch:save", "torch:load", "", "", "", ""), "how": HOW},
    "registers": {"scheme": ("file", "file", "memory")}, "warnings are errors": {},
    "full disk": {"bytes": (0, 3000, 20000)}, "read-only": {}, "spawned workers": {}, "without assertions": {},
}  # fmt: skip
"""The kinds of extensions, and their random choices.

``at`` counts the methods in the order of their first call; ``what`` is "" for a function that a default patch replaces.
See ``extending.py``.
"""
SELDOM = ("spawned workers", "without assertions")
"""Kinds that take seconds."""


@dataclass(frozen=True)
class Program:
    """A program: module and name (or a script with arguments), parameters, seed, and extension as JSON.

    ``fabric`` is True if the program uses Fabric, which 1.8 does not have.
    """

    file: str
    function: str
    parameters: tuple[str, ...] = ()
    seed: Optional[int] = None
    extension: str = "{}"
    fabric: bool = False

    def __str__(self) -> str:
        extension = " ".join(map(str, json.loads(self.extension).values()))
        return self.function + ("" if self.seed is None else f"@{self.seed}") + (f" {extension}" if extension else "")


@cache
def functions() -> tuple[Program, ...]:
    """Return every program without extensions."""
    found = []
    for path in (*sorted((HERE / "programs").glob("*.py")), TESTS / "patches" / "user_classes.py"):
        module = ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            parameters = tuple(a.arg for a in node.args.args) if isinstance(node, ast.FunctionDef) else ()
            if isinstance(node, ast.FunctionDef) and "observe" in parameters:
                names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                uses_fabric = "fabric" in names or path.stem == "random_fabric"
                found.append(Program(module, node.name, parameters, fabric=uses_fabric))
    return tuple(found)


def functions_of(version: str) -> tuple[Program, ...]:
    """Return every program that this release can run, without extensions."""
    return tuple(program for program in functions() if has_fabric(version) or not program.fabric)


def has_fabric(version: str) -> bool:
    return Version(version) >= Version("1.9")


def named(name: str, extension: str = "{}") -> Program:
    """Return the program with this name."""
    return replace(next(program for program in functions() if program.function == name), extension=extension)


def programs(version: str, first: int, end: int) -> Iterator[Program]:
    """Yield every program without extensions, then a random or an extended program for each seed."""
    yield from (program for program in functions_of(version) if "seed" not in program.parameters)
    yield from (drawn(version, seed) for seed in range(first, end))


def drawn(version: str, seed: int, name: str = "") -> Program:
    """Return the program of a seed.

    It depends on the release only through the functions that the patches replace, and through Fabric, which 1.8 lacks.
    """
    draw = random.Random(f"differential {seed}")
    kinds = [p for p in functions_of(version) if "seed" in p.parameters]
    extensible = [p for p in functions_of(version) if "own" in p.parameters and "seed" not in p.parameters]
    is_random = draw.random() < 0.55
    program = draw.choice(kinds if is_random else extensible)
    program = replace(named(name) if name else program, seed=seed)
    if is_random and draw.random() < 0.6:
        return program
    kind = draw.choice([kind for kind in KINDS if kind not in SELDOM or draw.random() < 0.15])
    spec = {"kind": kind, **{name: draw.choice(values) for name, values in KINDS[kind].items()}}
    if spec.get("what") == "":
        spec["what"] = draw.choice([t.location for name in default(version) for t in catalogue.find(name)[0].targets])
    return replace(program, extension=json.dumps(spec))


@cache
def default(version: str) -> tuple[str, ...]:
    """Return the patches that this release gets by default."""
    return tuple(p.name for p in catalogue.all_patches() if p.default and version in gate.affected_releases(p))


@dataclass
class Trace:
    """The behavior of a program: lines by process and rank, exit statuses (124 for a hang), reads, and called patches.

    ``reads`` are the attributes that Lightning read of the program's objects, each with the number of lines before it,
    and are recorded for programs that are extended by "reads". The files of the called patches are recorded only on
    request.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    reads: set[tuple[str, int, str]] = field(default_factory=set, compare=False)
    called: set[str] = field(default_factory=set, compare=False)

    def add(self, name: str, lines: Iterable[str]) -> None:
        """Add the lines of a rank."""
        found = self.lines.setdefault(name, [])
        for line in lines:
            if line.startswith("read "):
                self.reads.add((name, len(found), line[5:]))
            else:
                found.append(line)

    def all_lines(self) -> list[str]:
        return [f"{name}: {line}" for name in sorted(self.lines) for line in self.lines[name]]


class Release:
    """Run programs on one release, in processes forked from one that has imported it.

    ``regression`` is a bug from ``regressions.py`` to plant in a patch.
    """

    def __init__(self, version: str, regression: str = "") -> None:
        self.version = version
        self.regression = regression

    def __enter__(self) -> Release:
        self._parents = [self._parent(patched) for patched in (False, True)]
        return self

    def __exit__(self, *_: object) -> None:
        for parent, _ in self._parents:
            parent.close()

    def _parent(self, patched: bool) -> tuple[Preloaded, dict[str, str]]:
        variables = environment_of(Variant(distribution_of(self.version), self.version, shim=patched))
        variables |= {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0", "SCENARIO_SHIM": str(int(patched))}
        space = variables["SCENARIO_NAMESPACE"]
        names = [f"{space}.pytorch", f"{space}.fabric"] if space == "lightning" else [space]
        if space != "lightning":
            names.append("lightning_fabric" if has_fabric(self.version) else "lightning_lite")
        parts = ["cli", "tuner", "callbacks", "loggers"]
        if Version(self.version) < Version("2.0"):
            parts.append("callbacks.fault_tolerance")
        names += [f"{names[0]}.{part}" for part in parts]
        first = ["tests.support.with_rich", *(["lightning_patches"] if patched else [])]
        return Preloaded(variables, modules=(*first, *names)), variables

    def run(
        self,
        program: Program,
        patched: bool,
        toggle: Optional[str] = None,
        note_called: bool = False,
        then: Optional[bool] = None,
    ) -> Trace:
        """Run a program on stock, or with patches: those of ``toggle``, ``None`` for the default set.

        ``then`` says it for the second process of a program that has two, if it differs.
        """
        trace, spec = Trace(), json.loads(program.extension)
        task = {**vars(program), "extension": spec, "regression": self.regression if patched else ""}
        task |= {"toggle": toggle, "note_called": note_called}
        with tempfile.TemporaryDirectory(prefix="differential-") as directory:
            cwd = Path(directory, "program")
            cwd.mkdir()
            Path(directory).chmod(0o755)
            for process in (1, 2) if "process" in program.parameters else (1,):
                out = Path(directory, f"process-{process}")
                out.mkdir()
                out.chmod(0o777)
                parent, variables = self._parents[patched if process == 1 or then is None else then]
                mine = {**variables, "DIFFERENTIAL": json.dumps({**task, "process": process})}
                mine |= {"DIFFERENTIAL_OUT": str(out), "TMPDIR": str(out), "HOME": str(out)}
                if spec.get("kind") == "without assertions":
                    status, _ = execute([sys.executable, "-O", str(CHILD)], mine, LIMIT, str(cwd))
                else:
                    status, _ = parent.execute(CHILD, mine, LIMIT, str(cwd))
                trace.lines[f"{process}.status"] = [str(status)]
                for path in (*out.glob("rank.*"), *out.glob("unordered"), *out.glob("called")):
                    lines = path.read_text(errors="replace").splitlines()
                    if path.name == "called":
                        trace.called |= set(lines)
                    else:
                        trace.add(f"{process}.{path.name}", sorted(lines) if path.name == "unordered" else lines)
        return trace

    def patches_called(self, trace: Trace) -> list[str]:
        """Return the default patches whose code the program called; it must have run with ``note_called``."""
        files = [file[:-3].replace(os.sep, ".") for file in trace.called]

        def is_called(name: str) -> bool:
            builders = {target.build.__module__ for target in catalogue.find(name)[0].targets}
            return any(builder.endswith(f".{file}") for builder in builders for file in files)

        return [name for name in default(self.version) if is_called(name)]


@dataclass
class Outcome:
    """The outcome of a program: "same", "known difference", "flaky" or "finding".

    Also the patches that make a difference alone, each with the reason why it may ("" for none), and the first
    different lines of stock and of the patched run.
    """

    program: Program
    verdict: str
    patches: dict[str, str] = field(default_factory=dict)
    differs: list[tuple[str, str]] = field(default_factory=list)


def judge(release: Release, program: Program) -> Outcome:
    """Run a program on stock and with the default patches, and find the patch that causes a difference."""
    stock, patched = release.run(program, False), release.run(program, True)
    if stock == patched:
        return Outcome(program, "same")
    if any(release.run(program, False) != stock for _ in range(2)):
        return Outcome(program, "flaky")
    outcome = Outcome(program, "finding", differs=first_differences(stock, patched))
    called = release.patches_called(release.run(program, True, note_called=True))
    rest = patched
    for name in sorted(called, key=lambda name: name not in known_differences.DECLARED):
        alone = release.run(program, True, name)
        if alone != stock:
            outcome.patches[name] = why(name, stock, alone, patched)
        if alone == patched:  # this patch alone causes the whole difference
            outcome.patches, rest = {name: outcome.patches[name]}, stock
            break
    if outcome.patches and all(outcome.patches.values()):
        if rest != stock:
            rest = release.run(program, True, ",".join(f"-{name}" for name in outcome.patches))
        if rest == stock:
            outcome.verdict = "known difference"
            return outcome
        outcome.differs = first_differences(stock, rest)
    if release.run(program, False) != stock or release.run(program, True) != patched:
        outcome.verdict = "flaky"
    return outcome


NEAR = 20
"""So many lines after a difference, a line has only been shifted by others that went or came before it."""


def first_differences(before: Trace, after: Trace) -> list[tuple[str, str]]:
    """Return the first different lines of each rank, of stock and of the other run, in the first process that differs.

    A line is "" if lines were only added (except before an error that is gone) or only removed.
    """
    found: dict[str, tuple[str, str]] = {}
    for name in sorted({*before.lines, *after.lines}):
        if not name.endswith("status"):
            pairs = zip_longest(before.lines.get(name, []), after.lines.get(name, []), fillvalue="")
            at = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
            if at is not None:
                old, new = before.lines.get(name, [])[at:], after.lines.get(name, [])[at:]
                gone, come = bool(new) and new[0] in old[1:NEAR], bool(old) and old[0] in new[1:NEAR]
                lost = next((line for line in old if line not in new), "") if come else (old or [""])[0]
                found[name] = "" if come and not ERROR.match(lost) else lost, "" if gone or not new else new[0]
    first = min((name.partition(".")[0] for name in found), default="")
    return [pair for name, pair in found.items() if name.startswith(first)] or [("exit status", "")]


ERROR = re.compile(r"(end raises |saw raised = |call [\w ]+\.on_exception\()(?!.*on purpose)")


def why(patch: str, before: Trace, after: Trace, whole: Trace) -> str:
    """Return the reason why the patch may differ from stock; "" if there is none.

    The patch alone may run into another error that another patch fixes: ``whole`` is the trace with all patches.
    """
    pairs = first_differences(before, after)
    died = any(ERROR.match(old) for old, _ in pairs) and all(ERROR.match(old) or not old for old, _ in pairs)
    if died and not any(ERROR.match(new) for _, new in first_differences(before, whole)):
        return "no longer dies of an error"
    begins = known_differences.BEGINS.get(patch)
    if begins and any(map(any, pairs)) and all(re.match(begins, line) for pair in pairs for line in pair if line):
        return "known difference"
    only = known_differences.ONLY.get(patch)
    old, new = Counter(before.all_lines()), Counter(after.all_lines())
    changed = [line.partition(": ")[2] for line in (*(old - new), *(new - old))]
    return "known difference" if only and changed and all(re.match(only, line) for line in changed) else ""


def difference(name: str, version: str, patch: str, kind: str = "plain") -> list[str]:
    """Return the lines in which a program with one patch differs from stock, with or without an extension."""
    program = named(name, json.dumps({"kind": kind}))
    with Release(version) as release:
        stock, alone = release.run(program, False), release.run(program, True, patch)
    if stock == alone:
        return []
    old, new = Counter(stock.all_lines()), Counter(alone.all_lines())
    return [*(f"- {line}" for line in old - new), *(f"+ {line}" for line in new - old)] or ["another order"]
