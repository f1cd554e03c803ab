"""Count the known bugs of every release, stock, with the shim's default set, and with all patches, by running them.

    scripts/prove known_bugs                       # every release (75 minutes for stock and shim)
    scripts/prove known_bugs --releases 2.0.9,2.2.5,2.6.6
    scripts/prove known_bugs --resume              # go on after an interruption, or after a change
    scripts/prove known_bugs --resume --releases 2.6.6 --arms all    # and leave the others as they are recorded

A known bug is a patch of the catalogue; a release shows it if one of the patch's scenarios does (PROOFS in
tests/patches). The releases are those of pytorch-lightning, which has the same code as lightning and can be imported
from 2.0.0 on. A release in which all that a run executed is the same source as in one that was run is not run itself.
"""

import argparse
import concurrent.futures
import sys
import threading
import time

from packaging.version import Version

from tests.equivalence import evidence, known_bugs, matrix, same_code
from tests.equivalence.evidence import Seen
from tests.equivalence.known_bugs import ARMS, DISTRIBUTION, RECORD, subject
from tests.support.arms import Arm
from tests.support.executed import Executed


def releases(wanted: str | None) -> list[str]:
    every = matrix.importable(DISTRIBUTION)
    if wanted is None:
        return every
    chosen = wanted.split(",")
    unknown = sorted(set(chosen) - set(every))
    if unknown:
        sys.exit(f"known_bugs: not in upstream/releases.lock: {', '.join(unknown)}")
    return [version for version in every if version in chosen]


def look(proof, version: str, arm: str, runner: matrix.Runner) -> tuple[tuple[str, ...], Executed | None]:
    """What one case did in one arm, "bug", "none", or how it failed; and what it executed, if that is known."""
    if Version(version) < Version(proof.since or "0"):
        return ("none", "the release lacks the API"), None
    result = runner(proof, Arm(DISTRIBUTION, version, shim=arm != "stock"), toggle="all" if arm == "all" else None)
    if proof.shows_bug(result):
        return ("bug",), result.executed
    if result.ok:
        return ("none",), result.executed
    words = [line for line in result.output.strip().splitlines() if line.strip()]
    return ("fails", f"status {result.status}: {' | '.join(words[-2:])[-300:]}"), None


def measure(versions: list[str], jobs: int, resume: bool, arms: tuple[str, ...] = ARMS) -> None:
    proofs = [proof for proof in matrix.proofs() if not proof.old_torch]  # what is counted are this torch's bugs
    kept = {f"{one.place[1]} {one.case}": one for one in known_bugs.read()[1]} if resume else {}
    tasks = {
        f"{version} {proof} {arm}": (proof, version, arm) for version in versions for proof in proofs for arm in arms
    }
    subjects = {key: subject(*task) for key, task in tasks.items()}
    outcomes = {key: kept[key] for key in tasks if key in kept and not kept[key].stale}
    waiting = [key for key in tasks if key not in outcomes]
    print(f"{len(tasks)} runs, {len(outcomes)} taken over", flush=True)
    runner, lock = matrix.Runner(note_executed=True), threading.Lock()
    started, written = time.monotonic(), [time.monotonic()]

    def write_in_order() -> None:
        others = [one for key, one in kept.items() if key not in tasks]
        evidence.write(RECORD, evidence.surroundings(), [*others, *(outcomes[key] for key in tasks if key in outcomes)])

    def note(key: str, saw: str, why: str = "", by: str = "") -> None:
        proof, version, arm = tasks[key]
        with lock:
            instead = ("", by) if by else None
            outcomes[key] = Seen(f"{proof} {arm}", saw, ("", version), instead, note=why, subject=subjects[key])
            left = len(tasks) - len(outcomes)
            print(f"{saw:5} {key}, {left} left {f'by {by}' if by else why}", flush=True)
            if time.monotonic() - written[0] > 30:
                write_in_order()
                written[0] = time.monotonic()

    def releases_of(keys: list[str]) -> None:
        """One case in one arm, release by release: one that was run stands for those that are the same source."""
        standing: list[tuple[str, Executed]] = []
        for key in keys:
            proof, version, arm = tasks[key]
            for other, executed in standing:
                known = f"{other} {proof} {arm}"
                releases = (DISTRIBUTION, other), (DISTRIBUTION, version)
                if subjects[known] == subjects[key] and same_code.same(*releases, executed):
                    note(key, outcomes[known].saw, by=other)
                    break
            else:
                try:
                    found, ran = look(proof, version, arm, runner)
                except Exception as error:
                    found, ran = ("fails", f"{type(error).__name__}: {error}"[:300]), None
                note(key, *found)
                if ran is not None:
                    standing.append((version, ran))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        by_case: dict = {}
        for key in waiting:
            by_case.setdefault(key.partition(" ")[2], []).append(key)
        for done in concurrent.futures.as_completed([pool.submit(releases_of, keys) for keys in by_case.values()]):
            done.result()
    write_in_order()
    print(f"{len(waiting)} outcomes, {runner.runs} runs in {time.monotonic() - started:.0f} s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", metavar="VERSION,...", help="only these")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="ARM,...", help="only these (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="runs at the same time (default 4)")
    parser.add_argument(
        "--resume", action="store_true", help="keep what the record has that holds, and what is not run"
    )


def run(options: argparse.Namespace) -> int:
    arms = tuple(arm for arm in ARMS if arm in options.arms.split(","))
    measure(releases(options.releases), options.jobs, options.resume, arms)
    facts, seen = known_bugs.read()
    worse = known_bugs.worse(seen)
    print("\n".join(f"only with the shim: {what}" for what in worse))
    print("\n".join(f"fails: {one.place[1]} {one.case}" for one in seen if one.saw == "fails"))
    return 1 if worse else 0
