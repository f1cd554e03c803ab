"""The differential trial: a program runs on a stock release and with the shim on it, and must do the same.

What a program does is a list of lines (``watch.py``). Where the two differ, the patches behind it are found by
bisecting over the toggle; each of them has to be excused: the first official release with the fix writes the shim's
lines, or the patch declares them (``tests/support/effects.py``).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Optional

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.healthy import programs
from tests.support.arms import DROPPED, Arm, environment_of
from tests.support.effects import Effect, declared
from tests.support.preload import Preloaded

LIMIT = 60.0
"""Seconds after which a script is taken for one that hangs."""
STAND_IN = "stand-in"
"""What a patch is called that only the tests have."""


def distribution(version: str) -> str:
    return programs.namespace(version).replace("_", "-")


@dataclass
class Trace:
    """What a program did: its lines, for each script and rank, and each script's exit status (124: it hung)."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    output: str = ""

    @property
    def hung(self) -> bool:
        return 124 in self.status.values()

    def all_lines(self) -> list[str]:
        told = [f"{name}: {line}" for name in sorted(self.lines) for line in self.lines[name]]
        return told + [f"{name}: status {status}" for name, status in sorted(self.status.items())]


def _accident(line: str) -> bool:
    """Whether a line tells of an error that the program does not raise on purpose."""
    return bool(ERROR.search(line)) and "on purpose" not in line and not INTERRUPT.search(line)


ERROR = re.compile(r"^(end raises |saw raised = |hook \w+\.on_exception\()")
INTERRUPT = re.compile(r"(KeyboardInterrupt|SystemExit)")


_WARNING = re.compile(r"^[\w.]+: warning ")
AFTERMATH = re.compile(r"^message INFO Restor(ing|ed) .*\.(lr_find|scale_batch_size)_")
"""What a finder that has failed says, since 2.5.5, before its error comes to light."""
LOADS = re.compile(r"^hook \w+\.on_load_checkpoint\(")
"""What is told meanwhile, between the two."""


def _without_aftermath(trace: Trace) -> Trace:
    def kept(lines: list[str]) -> list[str]:
        found: list[str] = []
        restores = False
        for line in reversed(lines):
            said = AFTERMATH.search(line) if found and _accident(found[-1]) else None
            if said:
                restores = said[1] == "ed"
            elif not (restores and LOADS.search(line)):
                restores = False
                found.append(line)
        return found[::-1]

    return Trace({name: kept(lines) for name, lines in trace.lines.items()}, trace.status, trace.output)


def lives_longer(before: Trace, after: Trace) -> bool:
    """Whether the first difference, in each rank, is an error of before that did not come after."""
    pairs = _first_differences(_without_aftermath(before), _without_aftermath(after))
    died = any(_accident(old) for old, _ in pairs)  # other ranks may have had no time to write anything
    return died and all((_accident(old) or not old) and not _accident(new) for old, new in pairs)


@dataclass
class Change:
    """What the shim changed: lines that went, and lines that came."""

    gone: list[str]
    come: list[str]

    def __bool__(self) -> bool:
        return bool(self.gone or self.come)


def _counted(lines: list[str], places: bool) -> Counter[str]:
    """How often each line stands there, or each pair of successive lines."""
    return Counter(f"{a} THEN {b}" for a, b in zip(lines, lines[1:])) if places else Counter(lines)


def change(before: Trace, after: Trace) -> Change:
    """The difference. Lines that only changed places are told in pairs, each with its successor."""
    for places in (False, True):
        old, new = _counted(before.all_lines(), places), _counted(after.all_lines(), places)
        if old != new:
            return Change(list((old - new).elements()), list((new - old).elements()))
    return Change([], [])


def behaves_as(other: Trace, after: Trace, difference: Change) -> bool:
    """Whether another release writes each line of the difference as often as the program after the change; a warning
    may come again more often in one than in the other."""
    places = all(" THEN " in line for line in difference.gone + difference.come)
    theirs, ours = _counted(other.all_lines(), places), _counted(after.all_lines(), places)

    def alike(line: str) -> bool:
        repeated = not places and _WARNING.match(line) and theirs[line] and ours[line]
        return bool(repeated) or theirs[line] == ours[line]

    return all(alike(line) for line in (*difference.gone, *difference.come))


class Arms:
    """Runs programs, each script in a process that is forked from one that has imported the arm's Lightning.

    Args:
        version: the release that is tried.
        limit: seconds per script.
        stand_in: a function of ``stand_ins.py`` that stands in for one more patch, for tests of the trial.
    """

    def __init__(self, version: str, limit: float = LIMIT, stand_in: str = "") -> None:
        self.version = version
        self.limit = limit
        self.stand_in = stand_in
        self.runs = 0
        self._parents: dict[str, Preloaded] = {}

    def __enter__(self) -> Arms:
        return self

    def __exit__(self, *_: object) -> None:
        for parent in self._parents.values():
            parent.close()

    def _parent(self, version: str, shim: bool, toggle: Optional[str]) -> tuple[Preloaded, dict[str, str]]:
        """The process to fork from: one for stock and one for the default set of a release, one for all other arms."""
        own = toggle is None
        names = [name for name in (toggle or "").split(",") if name]
        stand_in = self.stand_in if shim and (toggle is None or STAND_IN in names) else ""
        if STAND_IN in names:
            toggle = ",".join(name for name in names if name != STAND_IN) or "none"
        arm = Arm(distribution(version), version, shim=shim)
        variables = environment_of(arm, toggle=toggle)
        variables.update(SCENARIO_SHIM="1" if shim else "0", HEALTHY_STAND_IN=stand_in, PYTHONWARNINGS="ignore")
        key = str(arm) if own else "torch"
        if key not in self._parents:
            if own:
                space = variables["SCENARIO_NAMESPACE"]
                names = [f"{space}.pytorch", f"{space}.fabric"] if space == "lightning" else [space, "lightning_fabric"]
                names += [f"{names[0]}.{part}" for part in ("cli", "tuner", "callbacks", "loggers")]
                self._parents[key] = Preloaded(variables, modules=(*(["lightning_patches"] if shim else []), *names))
            else:
                plain = {n: v for n, v in os.environ.items() if n not in (*DROPPED, "PYTHONPATH")}
                self._parents[key] = Preloaded(plain)
        return self._parents[key], variables

    def run(self, spec: programs.Spec, version: str, shim: bool, toggle: Optional[str] = None) -> Trace:
        """Run a program in an arm."""
        self.runs += 1
        parent, variables = self._parent(version, shim, toggle)
        trace = Trace()
        with tempfile.TemporaryDirectory(prefix="healthy-") as directory:
            cwd, out = Path(directory, "program"), Path(directory, "out")
            cwd.mkdir()
            out.mkdir()
            files = programs.scripts(spec, variables["SCENARIO_NAMESPACE"])
            for name, text in files.items():
                (cwd / name).write_text(text)
            variables.update(HEALTHY_OUT=str(out), TMPDIR=str(out), HOME=str(out), TORCHINDUCTOR_CACHE_DIR=str(out))
            for name in (n for n in programs.MAINS if n in files):
                status, output = parent.execute(cwd / name, dict(variables), self.limit, str(cwd))
                trace.status[name] = status
                trace.output += output
            for path in out.glob("*.[0-9]*"):
                if path.is_file() and path.suffix[1:].isdigit():
                    trace.lines[path.name] = path.read_text(errors="replace").splitlines()
        return trace


# -------------------------------------------------------------------------------------------------------------- judging


@dataclass
class Finding:
    """What came of a program on a release.

    Args:
        seed, version: which one.
        verdict: "same"; "discarded", it hangs on stock, or two runs of it differ by themselves; "explained"; "mended",
            all that changes is that it no longer dies of an error; "defect".
        patches: behind the difference.
        because: for each, what excuses it ("" for nothing).
        spec: of the program, shrunk for a defect.
        gone, come: what differs.
    """

    seed: int
    version: str
    verdict: str
    patches: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    spec: programs.Spec = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    come: list[str] = field(default_factory=list)


class Judge:
    """Tries programs on one release.

    Args:
        arms: where they run.
        shrinks: how many defects of one patch are made small.
    """

    def __init__(self, arms: Arms, shrinks: int = 2) -> None:
        self.arms = arms
        self.version = arms.version
        self.shrinks = shrinks
        self._seen: Counter[str] = Counter()
        """Patches behind differences so far: the first suspects."""
        self._defects: Counter[str] = Counter()

    def __call__(self, seed: int, spec: Optional[programs.Spec] = None) -> Finding:
        """Run the program of a seed, and explain the difference if there is one."""
        spec = programs.spec(seed) if spec is None else spec
        stock = self._run(spec, shim=False)
        if stock.hung:
            return Finding(seed, self.version, "discarded", because=["hangs on stock"], spec=spec)
        shim = self._run(spec, shim=True)
        difference = change(stock, shim)
        if not difference:
            told = [line for lines in stock.lines.values() for line in lines]
            return Finding(
                seed, self.version, "same", spec=spec, because=["fails"] if any(map(_accident, told)) else []
            )
        # Once more, in an arm that imports its Lightning anew, and has the shim with no patch at all.
        if change(stock, self._run(spec, True, "none")) or change(shim, self._run(spec, shim=True)):
            return Finding(seed, self.version, "discarded", because=["two runs of it differ"], spec=spec)
        guilty = self._blame(spec, stock)
        finding = Finding(seed, self.version, "explained", list(guilty), list(guilty.values()), spec)
        finding.gone, finding.come = difference.gone[:20], difference.come[:20]
        if not guilty or not all(guilty.values()):
            # What dies of an error dies of another one now and then: which rank is ended by whose end.
            if any(change(stock, self._run(spec, shim=False)) for _ in range(AGAIN)):
                return Finding(seed, self.version, "discarded", because=["two runs of it differ"], spec=spec)
            finding.verdict = "defect"
            first = next((name for name, excuse in guilty.items() if not excuse), "?")
            self._defects[first] += 1
            if self._defects[first] <= self.shrinks and guilty:
                finding.spec, difference = self._shrink(spec, first)
                finding.gone, finding.come = difference.gone[:40], difference.come[:40]
        elif MENDED in guilty.values():
            finding.verdict = "mended"
        return finding

    def _run(self, spec: programs.Spec, shim: bool, toggle: Optional[str] = None) -> Trace:
        return self.arms.run(spec, self.version, shim, toggle)

    def _blame(self, spec: programs.Spec, stock: Trace) -> dict[str, str]:
        """The patches that change what the program does, and what excuses each of them."""
        found: dict[str, str] = {}
        suspects = sorted(default_patches(self.version), key=lambda name: self._seen[name])
        suspects += [STAND_IN] if self.arms.stand_in else []

        @lru_cache(None)
        def changes(names: tuple[str, ...]) -> bool:
            return bool(change(stock, self._run(spec, True, ",".join(names)))) if names else False

        while changes(tuple(suspects)) and len(found) < 6:
            low, high = 0, len(suspects)  # the first `low` alone change nothing, the first `high` do
            if self._seen[suspects[-1]] and not changes(tuple(suspects[:-1])):
                low = high - 1
            while high - low > 1:
                middle = (low + high) // 2
                if changes(tuple(suspects[:middle])):
                    high = middle
                else:
                    low = middle
            guilty = suspects.pop(high - 1)
            self._seen[guilty] += 1
            found[guilty] = self._excuse(guilty, spec, stock)
        return found

    def _excuse(self, patch: str, spec: programs.Spec, stock: Trace) -> str:
        """Why a patch may change what the program did on stock; "" if nothing says so."""
        alone = self._run(spec, True, patch)
        difference = change(stock, alone)
        if not difference:
            return "only beside another"
        began = [new for _, new in _first_differences(stock, alone)]
        effects = [effect for name, effect in declared() if name == patch and _concerns(effect, spec)]
        effects = [effect for effect in effects if all(re.search(effect.begins, line) for line in began)]
        if covered(difference, effects):
            return "declared"
        if lives_longer(stock, alone):
            return MENDED
        fixed_in = None if patch == STAND_IN else catalogue.find(patch)[0].fixed_in
        if fixed_in is None:
            return ""
        official = self.arms.run(spec, fixed_in, shim=False)
        if behaves_as(official, alone, difference):
            return f"as {fixed_in}"
        # Between this release and the fixed one, other things have changed. The last release without the fix is nearer.
        last = max(gate.affected_releases(catalogue.find(patch)[0]), key=Version)
        there = self.arms.run(spec, last, True, patch)
        difference = change(self.arms.run(spec, last, shim=False), there)
        if difference and behaves_as(official, there, difference):
            return f"as {fixed_in}, seen on {last}"
        # Or it takes what was fixed before that to see the same.
        fixes = {name: catalogue.find(name)[0].fixed_in for name in default_patches(self.version)}
        names = [name for name, release in fixes.items() if release and Version(release) <= Version(fixed_in)]
        together = self._run(spec, True, ",".join(names))
        difference = change(stock, together)
        same = difference and behaves_as(official, together, difference)
        return f"as {fixed_in}, with what was fixed before it" if same else ""

    def _shrink(self, spec: programs.Spec, patch: str) -> tuple[programs.Spec, Change]:
        """Drop options as long as the patch alone changes what the program does, and nothing excuses it."""

        def differs(candidate: programs.Spec) -> Optional[Change]:
            stock = self._run(candidate, False)
            if stock.hung or not change(stock, self._run(candidate, True)):
                return None
            found = change(stock, self._run(candidate, True, patch))
            return found if found and not self._excuse(patch, candidate, stock) else None

        difference = differs(spec)
        if difference is None:
            return spec, Change([], [])
        size = len(spec) // 2
        while size:
            options = [name for name in spec if name != "kind"]
            for start in range(0, len(options), size):
                without = set(options[start : start + size])
                candidate = programs.settle({n: v for n, v in spec.items() if n not in without})
                found = differs(candidate) if len(candidate) < len(spec) else None
                if found:
                    spec, difference = candidate, found
                    break
            else:
                size //= 2
        return spec, difference


MENDED = "no longer dies of an error"
AGAIN = 3
"""How often a program that would be a defect runs on stock once more."""


def default_patches(version: str) -> list[str]:
    return [p.name for p in catalogue.all_patches() if p.default and version in gate.affected_releases(p)]


def _concerns(effect: Effect, spec: programs.Spec) -> bool:
    options, wanted = programs.OPTIONS[spec["kind"]], effect.programs
    return not effect.situations and all(
        name in options and spec.get(name, options[name][0]) in values for name, values in wanted.items()
    )


def _first_differences(before: Trace, after: Trace) -> list[tuple[str, str]]:
    """The lines with which each rank begins to do something else, in the first script in which any does."""
    for script in programs.MAINS:
        found = []
        for name in sorted(set(before.lines) | set(after.lines)):
            pairs = zip_longest(before.lines.get(name, []), after.lines.get(name, []), fillvalue="")
            if name.startswith(script.removesuffix("py")):
                found += [(old, new) for old, new in pairs if old != new][:1]
        if found:
            return found
    return []


def covered(difference: Change, effects: list[Effect]) -> bool:
    """Whether each line that went or came is one of these effects'."""
    sides = (("gone", difference.gone), ("come", difference.come))
    return all(
        any(re.search(pattern, line) for effect in effects if effect.only in ("", side) for pattern in effect.lines)
        for side, lines in sides
        for line in lines
    )
