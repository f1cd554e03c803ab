"""Try programs that extend, wrap or override what the default patches come near: they must meet what stock shows them.

    scripts/prove extension_points                          # all of them, on the releases of the judge (hours)
    scripts/prove extension_points --releases 2.6.6 --minutes 20
    scripts/prove extension_points --again              # what the record has no excuse for, once more
    scripts/prove extension_points --releases 2.6.6 --only fabric,swa --kinds documented,plain --try   # keep no record

The record is upstream/evidence/extension_points.json. What a patch may change, besides what the first fixed release
changes too, stands in `EFFECTS` of its tests (tests/support/effects.py).
"""

import argparse
import time

from tests.extension_points import judge, record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--releases", default=",".join(judge.RELEASES))
    parser.add_argument("--only", default=",".join(judge.SITUATIONS), help="situations")
    parser.add_argument("--kinds", default="", help="kinds of extensions (default: all)")
    parser.add_argument("--times", type=int, default=judge.TIMES, help="fits of a program that is repeated")
    parser.add_argument("--without", default="", help="patches to leave out")
    parser.add_argument("--minutes", type=float, default=1e6, help="for each release; what was tried by then is kept")
    parser.add_argument("--again", action="store_true", help="of each release what nothing excused, alone")
    parser.add_argument("--try", action="store_true", dest="tried", help="write no record")


def words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def run(options: argparse.Namespace) -> int:
    known, worst = record.load(), 0
    for version in words(options.releases):
        again = known.begin(version, again=options.again)
        until = time.monotonic() + options.minutes * 60
        with judge.Arms(version) as arms:
            tries = judge.Judge(arms, words(options.without))
            for spec in tries.programs(words(options.only)):
                if time.monotonic() > until:
                    break
                if options.kinds and spec["kind"] not in words(options.kinds):
                    continue
                if options.again and judge.name_of(spec) not in again:
                    continue
                if "times" in spec:
                    spec["times"] = options.times
                finding = tries(spec)
                known.take(finding)
                tell(finding)
                worst |= finding.verdict == "finding"
            print(f"{version}: {arms.runs} runs", flush=True)
        if not options.tried:
            record.write(known)
    return int(worst)


def tell(finding: judge.Finding) -> None:
    if finding.verdict not in ("explained", "mended", "finding"):
        return
    told = [f"{p} ({why or 'nothing excuses it'})" for p, why in zip(finding.patches, finding.because)]
    print(f"{finding.verdict} {finding.version} {judge.name_of(finding.spec)}: {', '.join(told)}", flush=True)
    if finding.verdict == "finding":
        for line in [f"  - {line}" for line in finding.gone[:6]] + [f"  + {line}" for line in finding.come[:6]]:
            print(line[:200], flush=True)
