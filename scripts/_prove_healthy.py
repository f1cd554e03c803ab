"""Try random programs that work on a stock release: with the shim, they must do the same to the last bit.

    scripts/prove healthy 0 900                # the seeds 0 to 899, each on the release that it says
    scripts/prove healthy 900 1800 --add       # more of them, into the record of those before
    scripts/prove healthy 100000 100100 --add  # a hundred on the oldest release, which gets the most patches
    scripts/prove healthy 0 900 --resume       # those of them that the record does not have
    scripts/prove healthy --again              # those of the record that differed, and keep the rest
    scripts/prove healthy --show 17            # print the program of a seed; a defect's as small as it could be made
    scripts/prove healthy --try 17             # run one, and print what differs

What a patch may change in a healthy program, besides what the first fixed release of Lightning changes too, stands in
`EFFECTS` of its tests (tests/support/effects.py).
"""

import argparse
import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable

from tests.equivalence import evidence
from tests.healthy import programs, record, trial


def release(version: str, seeds: list[int], options: argparse.Namespace, take: Callable[[trial.Finding], None]) -> None:
    """Try the programs of one release, as far as the time goes."""
    until, done = time.monotonic() + options.minutes * 60, 0
    with trial.Arms(version) as arms:
        judge = trial.Judge(arms, options.shrinks)
        for seed in seeds:
            if time.monotonic() > until:
                break
            finding = judge(seed)
            take(finding)
            done += 1
            if finding.verdict != "same":
                told = [f"{p} ({why or 'nothing excuses it'})" for p, why in zip(finding.patches, finding.because)]
                print(
                    f"{finding.verdict:9} {seed} on {version}: {', '.join(told) or ', '.join(finding.because)}",
                    flush=True,
                )
            if done % 25 == 0:
                print(f"{version}: {done} of {len(seeds)} programs so far", flush=True)
    print(f"{version}: {done} of {len(seeds)} programs, {arms.runs} runs", flush=True)


def campaign(known: record.Record, seeds: list[int], options: argparse.Namespace) -> None:
    """Try the programs of all releases, and write the record every half minute."""
    of, turn, written = evidence.commit("lightning_patches", "tests/healthy"), threading.Lock(), time.monotonic()

    def take(finding: trial.Finding) -> None:
        nonlocal written
        with turn:
            known.take([finding], of)
            if time.monotonic() - written > 30:
                record.write(known)
                written = time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(release, version, chosen, options, take)
            for version in (*programs.RELEASES, programs.OLDEST)
            if (chosen := [seed for seed in seeds if programs.release(seed) == version])
        ]
        for task in concurrent.futures.as_completed(tasks):
            task.result()
    record.write(known)


def show(finding: trial.Finding) -> None:
    print(f"# seed {finding.seed} on {finding.version}: {finding.verdict} {finding.spec}")
    for name, text in programs.scripts(finding.spec, programs.namespace(finding.version)).items():
        print(f"# ------ {name}\n{text}")


def tell(finding: trial.Finding) -> None:
    show(finding)
    for patch, why in zip(finding.patches, finding.because):
        print(f"{patch}: {why or 'nothing excuses it'}")
    print("\n".join([f"- {line}" for line in finding.gone] + [f"+ {line}" for line in finding.come]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=int, nargs="?", help="first seed")
    parser.add_argument("end", type=int, nargs="?", help="the seed after the last")
    parser.add_argument("--add", action="store_true", help="keep the programs that the record has")
    parser.add_argument("--resume", action="store_true", help="--add, and try what the record does not have")
    parser.add_argument("--again", action="store_true", help="run those again that differed")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--try", type=int, metavar="SEED", dest="tried")
    parser.add_argument("--release", metavar="VERSION", help="with --show and --try, another than the seed's")
    parser.add_argument("--jobs", type=int, default=1, help="releases at the same time (default 1)")
    parser.add_argument("--shrinks", type=int, default=0, help="defects of a patch on a release to make small (0)")
    parser.add_argument("--minutes", type=float, default=1e6, help="for each release; what was tried by then is kept")


def run(options: argparse.Namespace) -> int:
    if options.show is not None:
        known = {finding.seed: finding for finding in record.load().findings}
        seed = options.show
        plain = trial.Finding(seed, options.release or programs.release(seed), "", spec=programs.spec(seed))
        show(known.get(seed, plain) if options.release is None else plain)
    elif options.tried is not None:
        with trial.Arms(options.release or programs.release(options.tried)) as arms:
            tell(trial.Judge(arms)(options.tried))
    elif options.again or None not in (options.first, options.end):
        known = record.load() if options.add or options.again or options.resume else record.Record()
        seeds = [f.seed for f in known.findings] if options.again else list(range(options.first, options.end))
        if options.resume:
            seeds = [seed for seed in seeds if str(seed) not in known.commits]
        campaign(known, seeds, options)
        return record.defects()
    else:
        sys.exit("prove healthy: which seeds?")
    return 0
