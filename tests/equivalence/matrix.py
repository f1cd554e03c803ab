"""The equivalence matrix: which cells there are, and what comes out when one is run.

A cell is one case of one scenario on one release of one distribution. On an affected release four arms run: stock has
to show the bug; shim, fork and official release have to observe the same. On a release that is not affected, stock must
not show the bug, and the shim must neither apply anything nor change what is observed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import sys
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Generator, Iterable, Iterator, Literal, Optional

from packaging.version import Version

from tests.equivalence.content import content, relied_on
from tests.equivalence.proof import Proof
from tests.support import old_torch
from tests.support.arms import ROOT, SCENARIOS, Arm, Result, run

import _diffs  # isort: skip  (tests.support.arms has put scripts/ on the path)
import _fork  # isort: skip
import _releases  # isort: skip
from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from lightning_patches.patch import Patch, Target

TESTS = Path(__file__).resolve().parents[1] / "patches"
PACKAGE = ROOT / "lightning_patches"
Role = Literal["before", "affected", "fixed", "newest"]
NAMESPACES = _releases.NAMESPACES
NOT_IMPORTABLE = {"lightning": "2.1.0"}
"""``lightning`` below this release imports the whole App with its dependencies; the other has the same code."""


@dataclass(frozen=True)
class Cell:
    """One place of the matrix.

    Args:
        proof: the case.
        distribution: ``"lightning"`` or ``"pytorch-lightning"``.
        version: the release.
        role: what the release is to the patch.
    """

    proof: Proof
    distribution: str
    version: str
    role: Role

    def __str__(self) -> str:
        return f"{self.proof} {self.distribution} {self.version} ({self.role})"


@dataclass
class Outcome:
    """What came of a cell.

    Args:
        patch, case, distribution, version, role: which cell.
        arms: in a word, what each arm did: "bug", "right", "as stock", "differs", "fails".
        reference: what the fourth arm was.
        agrees: the promise holds here.
        torch: version of the old torch that the arms had, "" for the matrix's own.
        subject: what was proven, see :func:`subject`.
        premise: what stock and reference depend on, see :func:`premise`.
        expected: digest of what shim and fork had to observe.
        by: the release that was run instead, being the same source in all that was executed; "" for this one.
        commit: that it was run on.
        stale: something that it depends on has changed since.
        details: where the promise does not hold, what was seen.
    """

    patch: str
    case: str
    distribution: str
    version: str
    role: Role
    arms: dict[str, str] = field(default_factory=dict)
    reference: str = ""
    agrees: bool = False
    torch: str = ""
    subject: str = ""
    premise: str = ""
    expected: str = ""
    by: str = ""
    commit: str = ""
    stale: bool = False
    details: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def key(self) -> str:
        """Names the cell in the record."""
        return " ".join((self.patch, self.case, self.distribution, self.version, self.role))


class Runner:
    """Runs arms, each of them once: what was seen of an arm is kept for the other cells that ask for it."""

    def __init__(self, timeout: float = 240, note_executed: bool = False) -> None:
        self.timeout = timeout
        self.note_executed = note_executed
        self.runs = 0
        self._results: dict[tuple[Any, ...], Future[Result]] = {}
        self._lock = threading.Lock()

    def __call__(
        self,
        proof: Proof,
        arm: Arm,
        case: Optional[str] = None,
        toggle: Optional[str] = None,
        environment: tuple[tuple[str, str], ...] = (),
    ) -> Result:
        case = proof.case if case is None else case
        key = (proof.scenario, case, proof.simulated_cuda, proof.old_torch, arm, toggle, environment)
        with self._lock:
            waiting = self._results.get(key)
            mine = waiting is None
            if waiting is None:
                waiting = self._results[key] = Future()
                self.runs += 1
        if mine:
            try:
                variables = dict(environment)
                options = {"timeout": self.timeout, "fresh": proof.fresh, "old_torch": proof.old_torch}
                options["note_executed"] = self.note_executed and not proof.old_torch
                waiting.set_result(run(proof.scenario, arm, case, proof.simulated_cuda, toggle, variables, **options))
            except BaseException as error:
                waiting.set_exception(error)
        return waiting.result()


# -------------------------------------------------------------------- which cells


def cells(
    names: Optional[Iterable[str]] = None, distribution: Optional[str] = None, boundaries_only: bool = False
) -> list[Cell]:
    """The cells to run, patch by patch, oldest release first."""
    found = []
    for proof in proofs(names):
        if _lacks_python(proof):
            continue
        for name in NAMESPACES if distribution is None else (distribution,):
            found += boundaries(proof, name) if boundaries_only else whole(proof, name)
    return found


@cache
def every_cell() -> tuple[Cell, ...]:
    """The whole matrix, in the order of the record, with the cases that cannot run here."""
    return tuple(cell for proof in proofs() for name in NAMESPACES for cell in whole(proof, name))


def left_out(names: Optional[Iterable[str]] = None) -> list[str]:
    """The cases that have no cells here, with the reason."""
    return [f"{proof}: {old_torch.find().reason}" for proof in proofs(names) if _lacks_python(proof)]


def _lacks_python(proof: Proof) -> bool:
    """Whether the case wants an old torch, and there is none here."""
    return proof.old_torch and old_torch.find().python is None


def key(cell: Cell) -> str:
    """Names a cell in the record."""
    return Outcome(cell.proof.patch, cell.proof.case, cell.distribution, cell.version, cell.role).key


def failed(cell: Cell, error: BaseException) -> Outcome:
    """The outcome of a cell that could not be run."""
    proof = cell.proof
    details = f"could not be run: {type(error).__name__}: {error}"
    return Outcome(proof.patch, proof.case, cell.distribution, cell.version, cell.role, details=details)


def proofs(names: Optional[Iterable[str]] = None) -> list[Proof]:
    """The cases of the wanted patches, as their tests state them, in the order of the patches' names."""
    wanted = None if names is None else set(names)
    return [proof for proof in _stated() if wanted is None or proof.patch in wanted]


@cache
def _stated() -> list[Proof]:
    found: list[Proof] = []
    for path in sorted(TESTS.glob("test_*.py")):
        found += getattr(importlib.import_module(f"tests.patches.{path.stem}"), "PROOFS", ())
    return sorted(found, key=lambda proof: proof.patch)


def unproven() -> list[str]:
    """Patches without a scenario, an expectation or a diff, with what is missing.

    One that only warns has a scenario; what it observes is compared by its test, with stock's.
    """
    diffs = {diff.name for diff in _diffs.series()}
    expected = {proof.patch for proof in proofs()}
    missing = []
    for patch in catalogue.all_patches():
        lacks = []
        if not (SCENARIOS / f"{patch.name.replace('-', '_')}.py").exists():
            lacks.append("a scenario")
        if patch.name not in expected and patch.affected and not patch.warns_of:
            lacks.append("an expectation")
        if patch.name not in diffs and patch.affected and not patch.warns_of:
            lacks.append("a diff")
        if any(proof.old_torch != (patch.probe is not None) for proof in proofs([patch.name])):
            lacks.append("a probe, or proofs with an old torch")
        if lacks:
            missing.append(f"{patch.name} lacks {' and '.join(lacks)}")
    return missing


def boundaries(proof: Proof, distribution: str) -> list[Cell]:
    """Last release before the bug, first and last affected, first fixed and newest, as far as they exist."""
    versions = importable(distribution)
    patch = _diffs.record(proof.patch)
    affected = affected_by(proof, distribution)
    everywhere = gate.affected_releases(patch)
    cells = []
    if affected:
        first = versions.index(affected[0])
        before = versions[first - 1] if first else None
        if before and before not in everywhere and can_run(proof, before):
            cells.append(Cell(proof, distribution, before, "before"))
        cells += [Cell(proof, distribution, v, "affected") for v in dict.fromkeys((affected[0], affected[-1]))]
    fixed_in = official(proof)
    if fixed_in in versions:
        cells.append(Cell(proof, distribution, str(fixed_in), "fixed"))
    if versions[-1] not in (*everywhere, patch.fixed_in) and can_run(proof, versions[-1]):
        cells.append(Cell(proof, distribution, versions[-1], "newest"))
    return cells


def whole(proof: Proof, distribution: str) -> list[Cell]:
    """Every affected release, and the boundaries around them."""
    around = [cell for cell in boundaries(proof, distribution) if cell.role != "affected"]
    cells = [Cell(proof, distribution, version, "affected") for version in affected_by(proof, distribution)]
    return sorted([*around, *cells], key=lambda cell: Version(cell.version))


def affected_by(proof: Proof, distribution: str) -> list[str]:
    """The affected releases on which a case can run, oldest first."""
    affected = gate.affected_releases(_diffs.record(proof.patch))
    return [version for version in importable(distribution) if version in affected and can_run(proof, version)]


def newest_affected(proof: Proof) -> Optional[Cell]:
    """The cell of the newest affected release, of ``lightning`` where it can run there; ``None`` if there is none.

    A bug of 2.0 only is one of ``pytorch-lightning``: the other package's 2.0 imports more than there is here.
    """
    for distribution in ("lightning", "pytorch-lightning"):
        affected = affected_by(proof, distribution)
        if affected:
            return Cell(proof, distribution, affected[-1], "affected")
    return None


def on_one_card() -> list[Cell]:
    """The newest affected release of each case for which one GPU is enough."""
    found = (newest_affected(proof) for proof in proofs() if proof.one_card)
    return [cell for cell in found if cell is not None]


def wheels_to_carry() -> list[Path]:
    """The wheels that the cells of :func:`on_one_card` need on a machine without a network."""
    needed = set()
    for cell in on_one_card():
        needed |= {(cell.distribution, cell.version), (cell.distribution, official(cell.proof) or cell.version)}
    return [_releases.wheel(*release) for release in sorted(needed)]


def official(proof: Proof) -> Optional[str]:
    """The first fixed release, if there is one and the case can run on it."""
    fixed_in = _diffs.record(proof.patch).fixed_in
    return fixed_in if fixed_in is not None and can_run(proof, fixed_in) else None


def can_run(proof: Proof, version: str) -> bool:
    """Whether a release has the API that the case needs, and can be imported with its torch."""
    has_api = Version(version) >= Version(proof.since or "0")
    return has_api and (not proof.old_torch or gate.in_ranges(version, (old_torch.RELEASES,)))


def importable(distribution: str) -> list[str]:
    first = Version(NOT_IMPORTABLE.get(distribution, "0"))
    return [version for version in _releases.versions(distribution) if Version(version) >= first]


def companions(patch: Patch, version: str) -> list[str]:
    """The patches that take part with ``patch`` on a release that it affects, itself included.

    An official release has all fixes up to its own, so shim and fork get those too. Where there is no official release
    to compare with, they get those that change the same functions; that the whole default set works together is for
    ``tests/differential`` and ``scripts/prove known_bugs`` to show.
    """
    own = {target.location for target in patch.targets}

    def takes_part(other: Patch) -> bool:
        if patch.fixed_in is None:
            return bool(own & {target.location for target in other.targets})
        return other.fixed_in is not None and Version(other.fixed_in) <= Version(patch.fixed_in)

    others = [p for p in catalogue.all_patches() if p.default and version in gate.affected_releases(p)]
    return sorted({patch.name, *(other.name for other in others if takes_part(other))})


def taking_part(cell: Cell) -> list[str]:
    """The patches that shim and fork have on an affected release."""
    patch = _diffs.record(cell.proof.patch)
    return [patch.name] if cell.proof.alone else companions(patch, cell.version)


def subject(cell: Cell) -> str:
    """Tells what a cell proves from what it would prove after a change of anything that takes part in it."""
    patch = _diffs.record(cell.proof.patch)
    affected = cell.role == "affected"
    names = taking_part(cell) if affected else [patch.name]
    return digest(cell.proof, tuple(names), diffs=affected)


def premise(cell: Cell) -> str:
    """The same for what was seen of stock and of the reference, which do not depend on our code."""
    return digest(cell.proof, (), diffs=False)


def holds(cell: Cell, known: dict[str, dict[str, Any]]) -> bool:
    """Whether a record proves a cell: it agreed, and nothing that it depends on has changed since."""
    outcome = known.get(key(cell))
    return outcome is not None and outcome["agrees"] and outcome["subject"] == subject(cell)


@cache
def digest(proof: Proof, patches: tuple[str, ...], diffs: bool) -> str:
    """Of the scenario, what is asked of it, the shim with the patches that take part, and their diffs.

    Args:
        proof: the case.
        patches: names of the patches; with none, the shim does not take part.
        diffs: the fork takes part.
    """
    parts = [repr(patches).encode(), *(relied_on(path, "PROOFS") for path in _stating(proof.patch))]
    files = {SCENARIOS / f"{proof.scenario}.py", SCENARIOS / "_scenario.py"}
    files |= set((ROOT / "tests" / "support" / "old_torch").rglob("*.[pt][yx]*")) if proof.old_torch else set()
    if proof.simulated_cuda:
        files |= simulated_cuda()
    for patch in patches:
        parts += [*code(patch), *(_changes(patch) if diffs else ())]
    found = hashlib.sha256()
    for path in sorted(files):
        if "__pycache__" not in path.parts:
            parts += (path.relative_to(ROOT).as_posix().encode(), content(path))
    for part in parts:
        found.update(part + b"\0")
    return found.hexdigest()[:16]


def simulated_cuda() -> set[Path]:
    """The files of the simulated device."""
    site = ROOT / "tests" / "simulated_cuda" / "site"
    return {*site.rglob("*.py"), *site.rglob("*.cpp")}


@cache
def _stating(patch: str) -> list[Path]:
    """The tests that state a patch's cases."""
    return [path for path in sorted(TESTS.glob("test_*.py")) if f'"{patch}"' in path.read_text()]


@cache
def code(patch: str) -> list[bytes]:
    """What the shim does for a patch: its record, its functions with what they rely on in their file, and the files
    of the package that are imported there."""
    record = _diffs.record(patch)
    builders = {target: _builder(target) for target in record.targets}
    targets = [(t.location, t.adds, t.since, t.before, t.early, *given) for t, (_, *given) in builders.items()]
    parts = [repr((record.affected, record.witnesses, targets)).encode()]
    for build in dict.fromkeys(build for build, *_ in builders.values()):
        path = Path(sys.modules[build.__module__].__file__ or "")
        parts += [relied_on(path, build.__name__), *(content(used) for used in sorted(imported(path)))]
    return parts


def _builder(target: Target) -> tuple[Any, ...]:
    """The function that builds a replacement, its name, and what it is given beforehand."""
    build: Any = target.build
    if isinstance(build, partial):
        return build.func, build.func.__name__, build.args, build.keywords
    return build, build.__name__


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files of the package that a file imports, and those that they import, without the engine."""
    found: set[Path] = set()
    engine = set((PACKAGE / "engine").glob("*.py"))  # judged by its own tests and the conformance suite
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lightning_patches"):
            for alias in node.names:
                names = f"{node.module}.{alias.name}".split(".")[1:]
                files = (PACKAGE.joinpath(*names[:end]).with_suffix(".py") for end in (len(names), len(names) - 1))
                found |= {file for file in files if file.is_file() and file not in (*engine, PACKAGE / "patch.py")}
    return frozenset(found.union(*(imported(file) for file in found)))


@cache
def _changes(patch: str) -> list[bytes]:
    """What a patch's diffs change, and where."""
    return [repr((d.affected, d.changes)).encode() for d in _diffs.series() if d.name == patch]


# -------------------------------------------------------------------- running one


def evaluate(cell: Cell, runner: Runner, known: Optional[dict[str, Any]] = None) -> Outcome:
    """Run a cell's arms and judge them.

    Args:
        cell: what to run.
        runner: runs arms.
        known: the cell's outcome in an earlier record. Where it agreed, and stock and reference would do the same
            again, only shim and fork run.
    """
    outcome = Outcome(cell.proof.patch, cell.proof.case, cell.distribution, cell.version, cell.role)
    outcome.torch = old_torch.find().torch if cell.proof.old_torch else ""
    outcome.subject, outcome.premise = subject(cell), premise(cell)
    if known is not None and known["agrees"] and known.get("expected") and known.get("premise") == outcome.premise:
        outcome.expected, outcome.reference = known["expected"], known["reference"]
        outcome.arms = {arm: known["arms"][arm] for arm in ("stock", "official") if arm in known["arms"]}
    judge = _affected if cell.role == "affected" else _unaffected
    problems = list(judge(cell, runner, outcome))
    if problems and known is not None:
        return evaluate(cell, runner)  # with all arms, whose words then stand in the record
    outcome.agrees = not problems
    outcome.details = "\n".join(problems)
    return outcome


def _affected(cell: Cell, runner: Runner, outcome: Outcome) -> Iterator[str]:
    proof, names = cell.proof, taking_part(cell)
    expected: Any = "what an earlier run saw of the reference"
    if not outcome.expected:
        expected = yield from _references(cell, runner, outcome)
        outcome.expected = _digest(expected)
    with_diffs = {diff.name for diff in _diffs.series()}
    fork = _fork.directory_of(cell.distribution, cell.version, [name for name in names if name in with_diffs])
    results = {
        "shim": runner(proof, Arm(cell.distribution, cell.version, shim=True), toggle=",".join(names)),
        "fork": runner(proof, Arm(cell.distribution, cell.version, directory=fork)),
    }
    for name, result in results.items():
        seen = view(proof.observed, result)
        right = _digest(seen) == outcome.expected and (proof.right is None or proof.right(result))
        outcome.arms[name] = "bug" if proof.shows_bug(result) else "right" if right else "differs"
        if outcome.arms[name] != "right":
            yield f"{name}: {outcome.arms[name]}\n  expected {expected}\n  observed {seen}\n  {_short(result)}"
    newest = cell.version == affected_by(proof, cell.distribution)[-1]  # records name what is called there
    undeclared = calls_not_in_records(results["shim"], names) if newest else []
    if undeclared:
        yield f"shim: its patches call what is in none of their records: {', '.join(undeclared)}"


def calls_not_in_records(result: Result, patches: Iterable[str]) -> list[str]:
    """What replacements were seen to call of Lightning, and no record names. In another release it may stand in another
    class or module: the name of the function decides."""
    records = [_diffs.record(name) for name in patches]
    declared = {location.rstrip("()") for patch in records for location in (*patch.locations, *patch.calls)}
    names = {_function(location) for location in declared}
    called = {f"{path[:-3].replace('/', '.')}:{name}" for path, name in result.called or () if name != "<module>"}
    return sorted(f"{call}()" for call in called if _function(call) not in names)


def _function(location: str) -> str:
    return location.partition(":")[2].rpartition(".")[2]


def _references(cell: Cell, runner: Runner, outcome: Outcome) -> Generator[str, None, Any]:
    """Run stock and the reference. Returns what shim and fork have to observe."""
    proof = cell.proof
    stock_arm = Arm(cell.distribution, cell.version)
    stock = runner(proof, stock_arm)
    outcome.arms["stock"] = "bug" if proof.shows_bug(stock) else "no bug"
    if outcome.arms["stock"] != "bug":
        yield f"stock does not show the bug: {_short(stock)}"
    fixed_in = official(proof)
    if fixed_in is not None:
        outcome.reference = f"{cell.distribution} {fixed_in}"
        reference = runner(proof, Arm(cell.distribution, fixed_in))
        expected = view(proof.observed, reference)
    else:
        case = proof.case if proof.recommended is None else proof.recommended
        outcome.reference = f"recommended usage on {cell.distribution} {cell.version}"
        reference = runner(proof, stock_arm, case, environment=proof.recommended_environment)
        expected = view(proof.recommended_observed or proof.observed, reference)
    same_run = fixed_in is None and proof.recommended is None and not proof.recommended_environment
    if same_run:
        expected["ended well"] = True  # the stock arm itself may end with the bug
    right = reference.observations != [] and (same_run or (reference.ok and not proof.shows_bug(reference)))
    outcome.arms["official"] = "right" if right else "fails"
    if not right:
        yield f"the official arm ({outcome.reference}) is not right: {_short(reference)}"
    return expected


def _unaffected(cell: Cell, runner: Runner, outcome: Outcome) -> Iterator[str]:
    proof = cell.proof
    if not outcome.expected:
        stock = runner(proof, Arm(cell.distribution, cell.version))
        outcome.arms["stock"] = "bug" if proof.shows_bug(stock) else "right" if stock.ok else "fails"
        outcome.expected = _digest(view(proof.observed, stock))
        if outcome.arms["stock"] != "right":
            yield f"stock is not right on a release that is not affected: {_short(stock)}"
    # Without what a selection by name keeps, so that Lightning can be imported.
    shim = runner(proof, Arm(cell.distribution, cell.version, shim=True), toggle=f"none,{proof.patch}")
    same = _digest(view(proof.observed, shim)) == outcome.expected
    outcome.arms["shim"] = "as stock" if same else "differs"
    if not same:
        yield f"shim differs from stock: {_short(shim)}"
    if f"lightning_patches: {cell.distribution} " in shim.output:
        yield f"the shim applied something: {_short(shim)}"


def view(part: Any, result: Result) -> Any:
    """What is compared of a run: whether it ended well, and the chosen part of what was observed."""
    try:
        return {"ended well": result.ok, "observed": part(result.observations)}
    except (KeyError, IndexError, TypeError) as error:
        return {"ended well": result.ok, "not observed": f"{type(error).__name__}: {error}"}


def _short(result: Result) -> str:
    lines = [line for line in result.output.strip().splitlines() if line.strip()]
    return f"status {result.status}, last words: {' | '.join(lines[-3:])[-600:]}"


def _digest(view: Any) -> str:
    return hashlib.sha256(json.dumps(view, sort_keys=True, default=repr).encode()).hexdigest()[:16]
