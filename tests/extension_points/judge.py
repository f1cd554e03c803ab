"""The judge for extension points: what a program puts around Lightning's functions meets the same with the patches on.

Nothing is listed by hand but the situations. Which methods a program may override comes from the classes, which of
them a patch comes near from watching it (`reached`), which functions are wrapped from the records (`targets`, `calls`).
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.healthy import programs, trial
from tests.healthy.trial import Change, Trace, change, default_patches
from tests.support.arms import execute
from tests.support.effects import declared

PROGRAM = Path(__file__).with_name("program.py")
RELEASES = ("2.0.9", "2.2.5", "2.5.2", "2.6.6")
"""Where the judge is held: each has patches that the others have not."""
SITUATIONS = tuple(
    re.findall(r"@situation\ndef (\w+)", Path(__file__).with_name("situations.py").read_text(encoding="utf-8"))
)
BRACKETS = (
    ("on_validation_start", "on_validation_end"),
    ("on_validation_epoch_start", "on_validation_epoch_end"),
    ("on_validation_batch_start", "on_validation_batch_end"),
    ("on_train_batch_start", "on_train_batch_end"),
    ("train", "train"),
)
"""Pairs of hooks between which a program may lend itself other weights: an average, a merged layer."""

TIMES = 20
Spec = dict[str, Any]
CHANCE = re.compile(r"message INFO \[rank: \d\] Received SIGTERM")
"""Where one of two ranks fails, whether the other is told to end before it does so by itself."""


class Arms(trial.Arms):
    """Runs the programs of the judge. Another selection of patches is made in the process that is forked."""

    def extended(
        self, spec: Spec, shim: bool, toggle: Optional[str] = None, version: str = ""
    ) -> tuple[Trace, set[str]]:
        """Run a program; returns what it did, and what of it was called near a patch: "part method"."""
        self.runs += 1
        parent, variables = self._parent(version or self.version, shim, None)
        trace, reached = Trace(), set()
        with tempfile.TemporaryDirectory(prefix="extended-") as directory:
            cwd, out = Path(directory, "program"), Path(directory, "out")
            for made in (cwd, out):
                made.mkdir()
                made.chmod(0o777 if made is out else 0o755)
            variables.update(HEALTHY_OUT=str(out), TMPDIR=str(out), HOME=str(out), EXTENSION=json.dumps(spec))
            limit = self.limit * max(1.0, spec.get("times", 0) / TIMES)
            if toggle is not None:
                variables["TOGGLE"] = toggle
            if spec["kind"] == "optimized":
                command = [sys.executable, "-O", str(PROGRAM)]
                status, trace.output = execute(command, variables, limit, str(cwd))
            else:
                status, trace.output = parent.execute(PROGRAM, dict(variables), limit, str(cwd))
            trace.status["program"] = status
            for path in out.glob("*.[0-9]*"):
                if path.is_file() and path.suffix[1:].isdigit():
                    trace.lines[path.name] = path.read_text(errors="replace").splitlines()
            if len(trace.lines) > 1:
                for name, lines in trace.lines.items():
                    trace.lines[name] = [line for line in lines if not CHANCE.match(line)]
            if (out / "reached").exists():
                reached = set((out / "reached").read_text().splitlines())
        return trace, reached


@dataclass
class Finding:
    """What came of one program.

    Args:
        version: the release.
        spec: situation and extension.
        verdict: "same", "explained", "mended", "finding"; "unlike itself", where two runs on stock differ.
        patches: behind the difference.
        because: for each, what excuses it ("" for nothing).
        gone, come: the lines that differ.
        results: those of the patches that change what a program that ends well computes or writes.
    """

    version: str
    spec: Spec
    verdict: str
    patches: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    come: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


RESULTS = re.compile(r"^\w+\.\d+: (weights|saw|logged|gradients|file) ")


def name_of(spec: Spec) -> str:
    rest = " ".join(str(v) for k, v in spec.items() if k not in ("situation", "kind", "but"))
    return f"{spec['situation']}: {spec['kind']} {rest}".strip()


class Judge:
    """Tries programs on the release of its arms.

    Args:
        arms: where they run.
        without: patches to leave out, so as to see what others do.
    """

    def __init__(self, arms: Arms, without: tuple[str, ...] = ()) -> None:
        self.arms = arms
        self.without = without
        self._toggle = ",".join(f"-{name}" for name in without) or None
        self._suspects: Counter[str] = Counter()
        self._companies: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self._excused: dict[tuple[Any, ...], tuple[Finding, list[tuple[str, Change]]]] = {}
        self._spied: dict[str, tuple[Trace, Trace, set[str]]] = {}
        self._varied: set[str] = set()

    def spied(self, situation: str) -> tuple[Trace, Trace, set[str]]:
        """The situation with every method of every part overridden: on stock, with the patches, and what they reach."""
        if situation not in self._spied:
            spec = {"situation": situation, "kind": "documented"}
            stock, _ = self.arms.extended(spec, shim=False)
            shim, reached = self.arms.extended(spec, True, self._toggle)
            self._spied[situation] = stock, shim, reached
        return self._spied[situation]

    def specs(self, situation: str) -> Iterator[Spec]:
        """Every program of a situation."""
        stock, _, reached = self.spied(situation)
        for kind in ("args", "plain", "properties"):
            yield {"situation": situation, "kind": kind}
        silent = [re.match(r"warning (\w+) (.*)", line) for lines in stock.lines.values() for line in lines]
        but = sorted({re.escape(found[2][:40].split("<")[0]) for found in silent if found})
        yield {"situation": situation, "kind": "errors", "but": but}
        for method in sorted(reached):
            part, _, name = method.partition(" ")
            if method in self._varied:  # in another situation
                continue
            self._varied.add(method)
            for kind in ("raises", "never", "fewer", "instance"):
                yield {"situation": situation, "kind": kind, "part": part, "method": name}
        calls = Counter(re.findall(r"call (\w+)\.(\w+)\(", "\n".join(stock.all_lines())))
        for part in sorted({part for part, _ in calls}):
            for enter, leave in BRACKETS:
                if calls[part, enter] and calls[part, leave] and (enter != "train" or part in MODULES):
                    yield {"situation": situation, "kind": "bracket", "part": part, "enter": enter, "leave": leave}
        for how in ("mock", "wrapt", "checker", "plain"):
            for location in ("torch:save", "torch:load"):
                yield {"situation": situation, "kind": "wrapper", "of": location, "how": how}
        for scheme in ("file", "memory"):
            yield {"situation": situation, "kind": "registered", "scheme": scheme}
        yield {"situation": situation, "kind": "full", "bytes": 3000}
        for kind in ("read-only", "spawn", "optimized"):
            yield {"situation": situation, "kind": kind}
        yield {"situation": situation, "kind": "repeated", "times": TIMES}

    def programs(self, situations: tuple[str, ...]) -> Iterator[Spec]:
        """Every program: first those that tell what else there is to try, the others in no order, so that the first
        are a sample of all."""
        yield from ({"situation": situation, "kind": "documented"} for situation in situations)
        rest = [spec for situation in situations for spec in self.specs(situation)]
        rest += self.wrappers(situations)
        random.Random(0).shuffle(rest)
        yield from rest

    def wrappers(self, situations: tuple[str, ...]) -> Iterator[Spec]:
        """Wrappers of what the default patches replace or call, each in the first situation that executes it."""
        replaced, known = self._functions()
        left = [*replaced, *(location for location in known if location not in replaced)]
        for situation in situations:
            spec = {"situation": situation, "kind": "wrapper", "how": "seen", "of": " ".join(left)}
            seen = self.arms.extended(spec, False)[1] if left else set()
            left = [location for location in left if location not in seen]
            for location in sorted(seen):
                for how in ("mock", "wrapt", "checker"):
                    common = {"situation": situation, "kind": "wrapper", "of": location, "how": how}
                    yield {**common, "tells": location in replaced}

    def _functions(self) -> tuple[list[str], list[str]]:
        """Upstream's functions that the default patches replace, and that they call, as ``module:attribute``."""
        space = programs.namespace(self.arms.version)
        roots = {"pytorch": f"{space}.pytorch", "fabric": f"{space}.fabric"}
        if space != "lightning":
            roots = {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"}
        found: tuple[list[str], list[str]] = ([], [])
        for name in default_patches(self.arms.version):
            patch = catalogue.find(name)[0]
            for into, locations in zip(found, ([t.location for t in patch.targets], patch.calls)):
                for location in locations:
                    root, _, rest = location.rstrip("()").partition(".")
                    if root in roots and rest:
                        into.append(f"{roots[root]}.{rest}")
        return found

    def __call__(self, spec: Spec) -> Finding:
        if spec["kind"] == "documented":
            stock, shim, _ = self.spied(spec["situation"])
        else:
            stock, shim = self.arms.extended(spec, False)[0], self.arms.extended(spec, True, self._toggle)[0]
        difference = change(stock, shim)
        finding = Finding(self.arms.version, spec, "same")
        if not difference:
            return finding
        ends = any(line.endswith(": end returns") for line in stock.all_lines())
        gone, come = sorted(difference.gone), sorted(difference.come)
        key = (spec["situation"], spec["kind"] == "properties", ends, tuple(gone), tuple(come))
        if key in self._excused:  # the very lines that were looked into before
            alike, declared_then = self._excused[key]
            if all(_declared(patch, spec, changed) for patch, changed in declared_then):
                return replace(alike, spec=spec)
        declarations: list[tuple[str, Change]] = []

        def take(patch: str, because: str, changed: Change) -> None:
            finding.patches.append(patch)
            finding.because.append(because)
            if because == "declared":
                declarations.append((patch, changed))
            if ends and any(RESULTS.match(line) for line in (*changed.gone, *changed.come)):
                finding.results.append(patch)

        @lru_cache(None)
        def run(*names: str) -> Trace:
            return self.arms.extended(spec, True, ",".join(names))[0]

        known = [name for name in default_patches(self.arms.version) if _declared(name, spec, difference)]
        if len(known) == 1 and not stock.hung and change(stock, run(known[0])) == difference:
            take(known[0], "declared", difference)  # it alone does all of it: no need to look for others
        else:
            usual = self._companies[spec["situation"]]
            guilty = () if stock.hung else self._usual_company(usual, run, stock, difference)
            if not guilty and (stock.hung or change(stock, self.arms.extended(spec, False)[0])):
                finding.verdict, finding.because = "unlike itself", ["two runs of it differ on stock"]
                return finding
            for patch in guilty or self._blame(run, stock):
                because = self._excuse(patch, spec, stock, run(patch))
                if not because:  # by chance?
                    run.cache_clear()
                    because = self._excuse(patch, spec, stock, run(patch))
                take(patch, because, change(stock, run(patch)))
            if finding.patches:
                usual[tuple(sorted(finding.patches))] += 1
        finding.verdict = "explained" if finding.patches and all(finding.because) else "finding"
        if finding.verdict == "explained" and trial.MENDED in finding.because:
            finding.verdict = "mended"
        elif {*finding.because} <= {ALONE_SAME}:  # it differed by chance: nobody does it again
            finding.verdict, finding.patches, finding.because = "unlike itself", [], ["now and then"]
        elif finding.verdict == "finding" and any(change(stock, self.arms.extended(spec, False)[0]) for _ in range(3)):
            finding.verdict, finding.patches, finding.because = "unlike itself", [], ["two runs of it differ on stock"]
        finding.gone, finding.come = difference.gone[:12], difference.come[:12]
        if finding.verdict in ("explained", "mended"):
            self._excused[key] = finding, declarations
        return finding

    def _usual_company(
        self, usual: Counter[tuple[str, ...]], run: Callable[..., Trace], stock: Trace, difference: Change
    ) -> tuple[str, ...]:
        """The patches behind earlier programs' differences, where they make all of this one and each does its part."""
        for names, _ in usual.most_common(4):
            if change(stock, run(*names)) == difference and all(change(stock, run(name)) for name in names):
                return names
        return ()

    def _blame(self, run: Callable[..., Trace], stock: Trace) -> list[str]:
        found: list[str] = []

        def changes(names: tuple[str, ...]) -> bool:
            return bool(names) and bool(change(stock, run(*names)))

        suspects = [name for name in default_patches(self.arms.version) if name not in self.without]
        suspects.sort(key=lambda name: self._suspects[name])
        while len(found) < 5:
            usual = [name for name in reversed(suspects) if self._suspects[name]][:4]
            guilty = next((name for name in usual if changes((name,))), "") if not found else ""
            if not guilty:
                if not changes(tuple(suspects)):
                    break
                low, high, step = 0, len(suspects), 1
                while high - low > 1:
                    middle = max(high - step, (low + high) // 2)  # the usual ones are the last
                    low, high = (low, middle) if changes(tuple(suspects[:middle])) else (middle, high)
                    step *= 2
                guilty = suspects[high - 1]
            suspects.remove(guilty)
            self._suspects[guilty] += 1
            found.append(guilty)
        return found

    def _excuse(self, patch: str, spec: Spec, stock: Trace, alone: Trace) -> str:
        """Why the patch may do this; "" if nothing says so."""
        if not change(stock, alone):
            return ALONE_SAME
        difference = _to_explain(spec, stock, alone)
        if not difference:
            return "reads what stock reads, another number of times"
        if _declared(patch, spec, difference):
            return "declared"
        ended = _errors(stock) - _errors(alone)
        reported = any(symptom in error for error in ended for symptom in catalogue.find(patch)[0].impact.symptoms)
        if trial.lives_longer(stock, alone) or _errors(stock) > _errors(alone) or reported:
            return trial.MENDED
        fixed_in = catalogue.find(patch)[0].fixed_in
        if fixed_in is None:
            return ""
        official = self.arms.extended(spec, False, version=fixed_in)[0]
        if trial.behaves_as(official, alone, difference):
            return f"as {fixed_in}"
        last = max(gate.affected_releases(catalogue.find(patch)[0]), key=Version)
        if last != self.arms.version:
            before = self.arms.extended(spec, False, version=last)[0]
            there = self.arms.extended(spec, True, patch, version=last)[0]
            nearer = _to_explain(spec, before, there)
            if nearer and trial.behaves_as(official, there, nearer):
                return f"as {fixed_in}, seen on {last}"
        return ""


def _to_explain(spec: Spec, stock: Trace, alone: Trace) -> Change:
    """Without the reads of properties that stock reads, too: how often that is differs from release to release."""
    difference = change(stock, alone)
    if spec["kind"] != "properties":
        return difference
    reads = {line for line in stock.all_lines() if re.search(r": call \w+\.\w+\(\)$", line)}
    gone, come = ([line for line in lines if line not in reads] for lines in (difference.gone, difference.come))
    return Change(gone, come)


def _errors(trace: Trace) -> set[str]:
    """What ends the program, in each rank, but for what it raises on purpose."""
    return {line for line in trace.all_lines() if re.search(": end raises (?!.*on purpose)", line)}


MODULES = ("Model",)
ALONE_SAME = "only beside another"


def _declared(patch: str, spec: Spec, difference: Change) -> bool:
    effects = [
        effect
        for name, effect in declared()
        if name == patch
        and (effect.situations or not effect.programs)
        and spec["situation"] in (effect.situations or [spec["situation"]])
        and all(spec.get(option) in values for option, values in effect.programs.items())
    ]
    return trial.covered(difference, effects)


def difference(situation: str, version: str, patch: str) -> Change:
    """What one patch alone changes in a situation as it stands."""
    spec = {"situation": situation, "kind": "plain"}
    with Arms(version) as arms:
        return change(arms.extended(spec, False)[0], arms.extended(spec, True, patch)[0])
