"""The stacks that users have: each torch with the Lightning releases of its time, and what comes of the patches there.

A patch is judged by the cases that state it (``PROOFS`` in ``tests/patches``), each run in two arms. The scenario tells
"no bug here" from "broken here": without the bug, stock must end well, and observe what the fixed release observes with
the same torch (or the recommended usage on the same release), as far as that can be run there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Iterable, Optional

from packaging.version import Version

from lightning_patches.engine import gate
from tests.equivalence import evidence, matrix
from tests.equivalence.proof import Proof
from tests.support.arms import Arm, Result, run

import _diffs  # isort: skip  (tests.support.arms has put scripts/ on the path)

DISTRIBUTION = "pytorch-lightning"
"""It has the same code as ``lightning``, and can be imported from 2.0.0 on."""
RECORD = evidence.DIRECTORY / "stacks.txt"
CURED, NOT_THERE, NOT_SUPPORTED = "cured", "not there", "not supported"
NOT_CURED, WORSE, BROKEN = "not cured", "worse", "broken"
SEVERITY = (NOT_THERE, CURED, NOT_SUPPORTED, BROKEN, NOT_CURED, WORSE)
"""What is said of a patch is what is said of its gravest case."""
SIGNS = {CURED: "✓", NOT_THERE: "–", NOT_SUPPORTED: "n/s", NOT_CURED: "**✗**", WORSE: "**worse**", BROKEN: "?"}
TIMEOUT = 240


@dataclass(frozen=True)
class Environment:
    """One torch, and what is installed beside it.

    Args:
        torch: its version.
        python: the Python that it gets, ``"3.8"``.
        releases: the Lightning releases that are run with it.
        beside: further requirements, of that time.
    """

    torch: str
    python: str
    releases: tuple[str, ...]
    beside: tuple[str, ...] = ()


ENVIRONMENTS = (
    # Pinned, so that pip does not search for a quarter of an hour for what still runs on Python 3.8.
    Environment(
        "2.0.1",
        "3.8",
        ("2.0.9",),
        ("numpy<2", "torchmetrics==1.2.1", "jsonargparse[signatures]==4.32.1", "rich==13.9.4", "aiohttp==3.10.11"),
    ),
    Environment("2.1.2", "3.9", ("2.1.4", "2.0.9"), ("numpy<2", "torchmetrics==1.2.1")),
    # 2.6.6 says that it accepts torch from 2.1 on.
    Environment("2.2.2", "3.10", ("2.2.5", "2.6.6", "2.1.4"), ("numpy<2", "torchmetrics==1.4.3")),
    Environment("2.3.1", "3.10", ("2.3.3", "2.2.5"), ("numpy<2", "torchmetrics==1.4.3")),
    Environment("2.4.1", "3.8", ("2.4.0", "2.3.3"), ("jsonargparse[signatures]==4.32.1",)),
    Environment("2.5.1", "3.12", ("2.5.6", "2.5.0.post0", "2.4.0")),
    Environment("2.6.0", "3.12", ("2.5.1.post0",)),
    Environment("2.7.1", "3.13", ("2.5.2",)),
    Environment("2.8.0", "3.13", ("2.5.6",)),
    Environment("2.10.0", "3.12", ("2.6.1",)),
    Environment("2.13.0", "3.11", ("2.6.6",)),
    Environment("2.14.1", "3.14", ("2.6.6", "2.5.6")),
    Environment("2.15.0", "3.13", ("2.6.6", "2.2.5")),
)
"""Every torch here was the newest of its minor; Python 3.8 ends with torch 2.4, Lightning 2.6 begins with 3.10."""


@dataclass
class Seen:
    """What came of one case on one stack.

    Args:
        stock: "bug", "right", "fails", or "wrong" (ends well, and observes what is not right).
        shim: "bug", "right", "fails", or "differs" (from stock, where stock is right).
        state: what that says of the patch, one of :data:`SEVERITY`.
        why: what there is to know about it.
    """

    stock: str
    shim: str
    state: str
    why: str = ""


def proofs_for(release: str) -> list[Proof]:
    """The cases of the patches that a release needs, but for those that need a device: each patch once, then the other
    cases."""
    found = [
        proof
        for proof in matrix.proofs()
        if not proof.simulated_cuda
        and release in gate.affected_releases(_diffs.record(proof.patch))
        and Version(release) >= Version(proof.since or "0")
    ]
    first = {proof.patch: proof for proof in reversed(found)}
    return sorted(found, key=lambda proof: first[proof.patch] is not proof)


def verdicts(release: str, python: str) -> dict[str, tuple[str, str]]:
    """What the shim says of each patch on a stack.

    Raises:
        RuntimeError: it said nothing.
    """
    result = run("_verdicts", Arm(DISTRIBUTION, release, shim=True, python=python), toggle="all", timeout=TIMEOUT)
    if not result.ok or not result.observations:
        raise RuntimeError(f"no verdicts for {DISTRIBUTION} {release}: {result}")
    return {name: tuple(entry) for name, entry in result.observations[0]["verdicts"].items()}


def look(proof: Proof, release: str, python: str, verdict: tuple[str, str]) -> Seen:
    """Run a case in the stock and in the shim arm of a stack, and judge."""
    stock = run_case(proof, Arm(DISTRIBUTION, release, python=python))
    toggle = proof.patch if proof.alone else f"1,{proof.patch}"
    shim = run_case(proof, Arm(DISTRIBUTION, release, shim=True, python=python), toggle)
    seen = judge(proof, stock, shim, verdict)
    if seen.state not in (NOT_THERE, NOT_CURED, WORSE) and (seen.state, seen.shim) != (BROKEN, "right"):
        return seen
    reference = run_reference(proof, release, python)
    return seen if reference is None else compare(seen, proof, stock, shim, reference)


def run_reference(proof: Proof, release: str, python: str) -> Optional[Result]:
    """What is right with the same torch: the fixed release or, where there is none, the usage that is recommended on
    the same one. ``None`` where there is neither."""
    patch = _diffs.record(proof.patch)
    if patch.fixed_in is not None:
        return run_case(proof, Arm(DISTRIBUTION, patch.fixed_in, python=python))
    if proof.recommended is None and not proof.recommended_environment:
        return None
    case = proof.case if proof.recommended is None else proof.recommended
    return run_case(
        proof, Arm(DISTRIBUTION, release, python=python), case=case, variables=proof.recommended_environment
    )


def run_case(
    proof: Proof,
    arm: Arm,
    toggle: Optional[str] = None,
    case: Optional[str] = None,
    variables: tuple[tuple[str, str], ...] = (),
) -> Result:
    case = proof.case if case is None else case
    return run(proof.scenario, arm, case, False, toggle, dict(variables), timeout=TIMEOUT, fresh=proof.fresh)


def judge(proof: Proof, stock: Result, shim: Result, verdict: tuple[str, str]) -> Seen:
    """What two runs say of the patch."""
    of_stock, of_shim = word(proof, stock), word(proof, shim)
    if of_stock == of_shim == "right" and matrix.view(proof.observed, stock) != matrix.view(proof.observed, shim):
        of_shim = "differs"
    if of_stock == "right":
        if of_shim == "right":
            return Seen(of_stock, of_shim, NOT_THERE, verdict[1] if verdict[0] == "not-affected" else "")
        return Seen(of_stock, of_shim, WORSE, short(shim))
    if of_stock == "fails":
        return Seen(of_stock, of_shim, BROKEN, short(stock))
    if of_shim == "right":
        return Seen(of_stock, of_shim, CURED)
    if verdict[0] == "not-supported" and of_shim == "bug":
        return Seen(of_stock, of_shim, NOT_SUPPORTED, verdict[1])
    return Seen(of_stock, of_shim, NOT_CURED, f"{verdict[0]}: {verdict[1]}; {short(shim)}")


def compare(seen: Seen, proof: Proof, stock: Result, shim: Result, reference: Result) -> Seen:
    """The same after a look at what is right: stock may end well and be wrong, or fail otherwise than was reported,
    and what is right may fail as well."""
    part = proof.observed
    if _diffs.record(proof.patch).fixed_in is None:
        part = proof.recommended_observed or part
    right, of_stock, of_shim = matrix.view(part, reference), *(matrix.view(proof.observed, r) for r in (stock, shim))
    if word(proof, reference) != "right":
        if seen.state == NOT_CURED and of_shim == right:
            return replace(seen, state=BROKEN, why=f"what is right there ends as the shim does: {short(reference)}")
    elif seen.state == NOT_THERE and of_stock != right:
        return replace(seen, state=BROKEN, why=f"stock shows no bug, but {difference(of_stock, right)}")
    elif seen.state == BROKEN and of_shim == right:
        return replace(seen, state=CURED, why=f"stock does not end as reported: {seen.why}")
    elif seen.state == WORSE and of_shim == right:
        why = f"stock does not end as reported: it ends well, and wrong: {difference(of_stock, right)}"
        return replace(seen, stock="wrong", shim="right", state=CURED, why=why)
    return seen


def word(proof: Proof, result: Result) -> str:
    return "bug" if proof.shows_bug(result) else "right" if result.ok and result.observations else "fails"


def short(result: Result) -> str:
    """The end of what a program said, without paths."""
    lines = [line.strip() for line in result.output.strip().splitlines() if line.strip()]
    return f"status {result.status}: {' | '.join(lines[-2:])[-240:]}"


def difference(seen: Any, right: Any, where: str = "") -> str:
    """The first place in which two observations differ."""
    if isinstance(seen, dict) and isinstance(right, dict) and seen.keys() == right.keys():
        pairs = [(f"{where}.{key}" if where else str(key), seen[key], right[key]) for key in seen]
    elif isinstance(seen, list) and isinstance(right, list) and len(seen) == len(right):
        pairs = [(f"{where}[{index}]", *both) for index, both in enumerate(zip(seen, right))]
    else:
        return f"{where} is {seen}, and not {right}"[:240]
    return next((difference(a, b, place) for place, a, b in pairs if a != b), "")


# -------------------------------------------------------------------- the record


@dataclass
class Held:
    """What the record has of a stack.

    Args:
        facts: how many cases there are, the versions, and the day of the last run.
        cases: what was seen.
    """

    facts: dict[str, Any]
    cases: list[evidence.Seen]


def subject(proof: Proof) -> str:
    """What an outcome depends on; it holds as long as that is the same."""
    return matrix.digest(proof, (proof.patch,), diffs=False)


def entry(proof: Proof, seen: Seen, stack: str) -> evidence.Seen:
    """What came of a case, for the record."""
    saw = f"{seen.state}: stock {seen.stock}, shim {seen.shim}"
    return evidence.Seen(str(proof), saw, _place(stack), note=seen.why, subject=subject(proof))


def _place(stack: str) -> evidence.Place:
    release, _, torch = stack.partition(" / ")
    return torch, release


def load() -> dict[str, Held]:
    """What was seen on each stack, ``"2.2.5 / torch 2.2.2"``."""
    proofs = {str(proof): proof for proof in matrix.proofs()}
    facts, seen = evidence.read(RECORD, lambda one: subject(proofs[one.case]) if one.case in proofs else "")
    record = {stack: Held(of_stack, []) for stack, of_stack in facts.items()}
    for one in seen:
        record[f"{one.place[1]} / {one.place[0]}"].cases.append(one)
    return record


def write(record: dict[str, Held]) -> None:
    """Write the record, stacks in order."""
    stacks = sorted(record, key=lambda stack: [Version(name.split()[-1]) for name in stack.split(" / ")])
    seen = sorted((one for stack in stacks for one in record[stack].cases), key=lambda one: one.case)
    evidence.write(RECORD, {stack: record[stack].facts for stack in stacks}, seen)


def state_of(one: evidence.Seen) -> str:
    return one.saw.partition(":")[0]


def name(release: str, environment: Environment) -> str:
    return f"{release} / torch {environment.torch}"


def by_patch(cases: list[evidence.Seen]) -> dict[str, tuple[str, str]]:
    """State and reason of each patch on a stack: those of its gravest case."""
    found: dict[str, tuple[str, str]] = {}
    for one in cases:
        patch, state, why = one.case.partition(":")[0], state_of(one), one.note
        if patch not in found or SEVERITY.index(state) > SEVERITY.index(found[patch][0]):
            found[patch] = (state, why)
    return found


def markdown(record: dict[str, Held]) -> str:
    """The table: patches down, stacks across."""
    columns = {stack: by_patch(held.cases) for stack, held in record.items()}
    counts = [[sum(state == s for s, _ in column.values()) for state in SEVERITY] for column in columns.values()]
    worse = sum(count[SEVERITY.index(WORSE)] for count in counts)
    seen = [one for held in record.values() for one in held.cases]
    stale = sum(one.stale for one in seen)
    text = [
        "# Stacks",
        "",
        f"**{len(seen)} cases on {len(record)} stacks: {len(seen) - stale} hold on this code, {stale} are stale; worse "
        f"with the shim than on stock: {worse}.** A case is stale if something that it depends on has changed since it "
        "was run.",
        "",
        "Lightning releases with the torch and the Python of their time; each scenario that needs no device, in a "
        "stock arm and in one with the shim. Made of `evidence/stacks.txt`, which `scripts/prove stacks` writes.",
        "",
        "| sign | |",
        "| --- | --- |",
        "| ✓ | cured: stock shows the bug, or is wrong in another way (see below), and the shim is right |",
        "| – | not there: with this torch or Python stock is right, and the shim observes the same |",
        "| n/s | not supported: the shim says so, and leaves Lightning as it is |",
        "| ? | cannot be shown: the scenario ends otherwise on stock, see below |",
        "| **✗** **worse** | not cured; right on stock and not with the shim |",
        "| empty | the release does not have the bug |",
        "",
        "| stack | Python | NumPy | torchmetrics | cases | ✓ | – | n/s | ? | ✗ | worse | date |",
        "| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    order = [SEVERITY.index(state) for state in (CURED, NOT_THERE, NOT_SUPPORTED, BROKEN, NOT_CURED, WORSE)]
    for (stack, held), count in zip(record.items(), counts):
        facts = held.facts
        numbers = " | ".join(str(count[index]) for index in order)
        versions = f"{facts['python']} | {facts['numpy']} | {facts['torchmetrics']}"
        text.append(f"| {stack} | {versions} | {extent(held)} | {numbers} | {facts['date']} |")
    text += ["", "| patch | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for patch in sorted({patch for column in columns.values() for patch in column}):
        signs = [SIGNS[column[patch][0]] if patch in column else "" for column in columns.values()]
        text.append(f"| {patch} | " + " | ".join(signs) + " |")
    remarks = [
        f"- {stack}, {one.case}: {state_of(one)}; {_inline(one.note)}"
        for stack, held in record.items()
        for one in held.cases
        if one.note
    ]
    return "\n".join([*text, *(["", "## Remarks", "", *remarks] if remarks else [])]) + "\n"


def extent(held: Held) -> str:
    """How much of a stack was run: ``"20 of 42, 15 stale"``, which were run before something they depend on changed."""
    stale, planned = sum(one.stale for one in held.cases), held.facts["planned"]
    few = f"{len(held.cases)} of {planned}" if len(held.cases) < planned else str(len(held.cases))
    return f"{few}, {stale} stale" if stale else few


def _inline(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def worse(record: dict[str, Held]) -> Iterable[str]:
    """The cases that are worse with the shim than on stock: there must be none."""
    for stack, held in record.items():
        yield from (f"{stack}, {one.case}" for one in held.cases if state_of(one) == WORSE)
