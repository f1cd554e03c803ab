"""The equivalence matrix: stock, shim, fork and official release, cell by cell.

    scripts/prove equivalence --all               # every affected release, and the boundaries around them
    scripts/prove equivalence --boundaries         # first and last affected release, and the boundaries around them
    scripts/prove equivalence --all --resume       # go on after an interruption; cells that disagreed are run again
    scripts/prove equivalence --all --resume --minutes 30  # as far as that goes, the boundaries first
    scripts/prove equivalence --all --resume --part DIR  # with the cells that a run has left there
    scripts/prove equivalence --boundaries --cuda  # on a real GPU; writes a record of its own
    scripts/prove equivalence --boundaries --only logged-metrics-device,lr-finder-train-loader --output DIR

Each arm runs in a process of its own. A release in which every function that the arms executed is the same source as
in one that was run is not run itself. The record is written twice a minute, and at the end. Exit status 1 if a cell
disagrees. With --resume a cell is run again if something that it depends on has changed, and only those of its arms
that depend on it.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Iterable

from tests.equivalence import evidence, matrix, proof, prover, record
from tests.support import arms

CODE = ("lightning_patches", "upstream/diffs", "tests")
"""What a cell depends on."""


def circumstances(scope: str) -> dict:
    return {"scope": scope, **evidence.surroundings(device()), "seconds": 0, "runs": 0}


def device() -> str:
    """What the scenarios run on."""
    if os.environ.get(arms.DEVICE) != "cuda":
        return evidence.SIMULATED
    import torch

    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        driver = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:  # as in some containers, and where the card is simulated
        driver = ""
    return f"{torch.cuda.get_device_name(0)}, driver {driver or 'unknown'}, CUDA {torch.version.cuda}"


def run(arguments: argparse.Namespace) -> int:
    names = [name.strip() for name in arguments.only.split(",")] if arguments.only else None
    cells = matrix.cells(names, arguments.distribution, boundaries_only=not arguments.all)
    if arguments.cuda:
        os.environ[arms.DEVICE] = "cuda"
        cells = [cell for cell in cells if cell.proof.one_card]
    if not cells:
        sys.exit("\n".join([f"equivalence: no cells for {arguments.only}", *matrix.left_out(names)]))
    if arguments.list:
        print("\n".join(map(str, cells)), f"\n{len(cells)} cells")
        return 0
    for what in matrix.unproven():
        print(f"not proven: {what}", flush=True)
    left_out = [] if arguments.cuda else matrix.left_out(names)
    for what in left_out:
        print(f"left out: {what}", flush=True)
    scope = "all" if arguments.all else "boundaries"
    campaign = Campaign(cells, arguments, {**circumstances(scope), "planned": len(cells), "left_out": left_out})
    campaign.run()
    bad = [outcome for outcome in campaign.outcomes.values() if not outcome["agrees"]]
    left = f", {len(campaign.waiting)} left" if campaign.waiting else ""
    print(f"{len(cells)} cells, {len(bad)} disagree{left}, {campaign.facts['seconds']} s; see {campaign.record}")
    return 1 if bad else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scope = parser.add_mutually_exclusive_group(required=True)
    scope.add_argument("--all", action="store_true", help="every affected release")
    scope.add_argument("--boundaries", action="store_true", help="only the ends of the affected ranges")
    parser.add_argument("--only", metavar="NAME,...", help="only these patches")
    parser.add_argument("--distribution", choices=sorted(matrix.NAMESPACES), help="only this one")
    parser.add_argument("--cuda", action="store_true", help="the cases for which one real GPU is enough, on this one")
    parser.add_argument("--jobs", type=int, default=4, help="cases that run at the same time (default 4)")
    parser.add_argument("--resume", action="store_true", help="keep the cells of the record whose proof holds")
    parser.add_argument(
        "--part", metavar="DIR", type=Path, action="append", default=[], help="keep the cells of this record, too"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after that time")
    parser.add_argument("--each", action="store_true", help="run each release; none stands for another")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    parser.add_argument("--output", type=Path, default=evidence.DIRECTORY, help="directory of the record")


class Campaign:
    """A run of the matrix: what is taken over from earlier records, what is left to do, and the record of both."""

    def __init__(self, cells: list[matrix.Cell], arguments: argparse.Namespace, facts: dict) -> None:
        self.cells = {matrix.key(cell): cell for cell in cells}
        self._every_cell = {matrix.key(cell): cell for cell in matrix.every_cell()} | self.cells
        self.facts = facts
        self.outcomes: dict[str, dict] = {}
        self._arguments = arguments
        self._lock = threading.Lock()
        self._seconds_before = self._runs_before = 0
        arguments.output.mkdir(parents=True, exist_ok=True)
        name = record.FILES[arguments.cuda]
        self.record = arguments.output / name
        self._commit = evidence.commit(*CODE)
        earlier = [*([self.record] if arguments.resume else []), *(part / name for part in arguments.part)]
        known: dict[str, dict] = {}
        for path in earlier:
            known |= self._take_over(path)
        runner = matrix.Runner(note_executed=not arguments.each)
        self._prover = prover.Prover(runner, known)
        self._started = self._written = time.monotonic()
        self._until = self._started + 60 * arguments.minutes

    @property
    def waiting(self) -> list[matrix.Cell]:
        done = {key for key, outcome in self.outcomes.items() if not outcome.get("stale")}
        return [cell for key, cell in self.cells.items() if key not in done]

    def _take_over(self, path: Path) -> dict[str, dict]:
        """Keep the cells of a record: those whose proof holds, and the others as stale until they are run again. Also
        those that this run leaves out: what was seen of them is as true as before."""
        found = {key: outcome for key, outcome in record.load(path, self.facts).items() if key in self._every_cell}
        for key, outcome in found.items():
            holds = matrix.holds(self._every_cell[key], found)
            if holds or key not in self.outcomes:
                self.outcomes[key] = {**outcome, "stale": not holds}
        if found:
            spent, _ = evidence.read(path, lambda one: "")
            self._seconds_before, self._runs_before = (
                self._seconds_before + spent["seconds"],
                self._runs_before + spent["runs"],
            )
        return found

    def run(self) -> None:
        """Run what is left to do, and write the record, also if it is interrupted."""
        waiting = self.waiting
        print(
            f"{len(self.cells)} cells, {len(self.cells) - len(waiting)} taken over, {len(waiting)} to run", flush=True
        )
        proofs = {cell.proof for cell in waiting}
        first = {matrix.key(c) for p in proofs for name in matrix.NAMESPACES for c in matrix.boundaries(p, name)}
        for boundaries in (True, False):
            cases: dict[proof.Proof, list[matrix.Cell]] = {}
            for cell in reversed(waiting):  # the newest release of a case first: it stands for those before it
                if (matrix.key(cell) in first) is boundaries:
                    cases.setdefault(cell.proof, []).append(cell)
            self._run(cases.values())
        self.write()

    def _run(self, cases: Iterable[list[matrix.Cell]]) -> None:
        with concurrent.futures.ThreadPoolExecutor(self._arguments.jobs) as pool:
            tasks = [pool.submit(self._prove, case) for case in cases]
            try:
                for task in concurrent.futures.as_completed(tasks):
                    task.result()
            except KeyboardInterrupt:
                self._until = 0.0
                pool.shutdown(cancel_futures=True)
                self.write()
                sys.exit(f"stopped; {len(self.cells) - len(self.waiting)} cells are done. Go on with --resume.")

    def _prove(self, case: list[matrix.Cell]) -> None:
        for cell in case:
            if time.monotonic() > self._until:
                return
            begun = time.monotonic()
            try:
                outcome = self._prover(cell)
            except Exception as error:
                outcome = matrix.failed(cell, error)
            outcome.commit = self._commit
            with self._lock:
                self.outcomes[matrix.key(cell)] = outcome.as_dict()
                if time.monotonic() - self._written > 30:
                    self.write()
                self._tell(cell, outcome, time.monotonic() - begun)

    def _tell(self, cell: matrix.Cell, outcome: matrix.Outcome, seconds: float) -> None:
        verdict = "agrees" if outcome.agrees else "DISAGREES"
        how = f"by {outcome.by}" if outcome.by else f"{seconds:.0f} s"
        print(f"{verdict:9} {cell}  {how}, {len(self.waiting)} left", flush=True)
        if not outcome.agrees:
            print("\n".join(f"    {line[:300]}" for line in outcome.details.splitlines()), flush=True)

    def write(self) -> None:
        self.facts["seconds"] = round(self._seconds_before + time.monotonic() - self._started)
        self.facts["runs"] = self._runs_before + self._prover.runner.runs
        done = [self.outcomes[key] for key in self._every_cell if key in self.outcomes]
        record.write(self.record, self.facts, done)
        self._written = time.monotonic()
