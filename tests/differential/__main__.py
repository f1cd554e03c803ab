"""See the docstring of the package."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")

from tests import differential
from tests.differential import trial


def chosen(version: str, seeds: list[int], only: str) -> list[trial.Program]:
    """``only`` is a name (``gan``), one with a seed (``trainer@17``), a seed (``@17``) or a file (``workarounds``)."""
    if not only:
        return list(trial.programs(version, *seeds))
    name, _, seed = only.partition("@")
    if seed:
        return [trial.drawn(version, int(seed.split()[0]), name)]
    known = trial.functions_of(version)
    found = [program for program in known if name in (program.function, program.file.rpartition(".")[2])]
    if found and "seed" in found[0].parameters:
        return [trial.drawn(version, seed, name) for seed in range(*seeds)]
    return found or sys.exit(f"there is no program {name!r}: write it into tests/differential/programs/")


def summary(version: str, outcomes: list[trial.Outcome]) -> str:
    """Return a table of the outcomes, and a description of each finding."""
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    patches = Counter(name for outcome in outcomes if outcome.verdict == "known difference" for name in outcome.patches)
    named = ", ".join(f"{name} {count}" for name, count in sorted(patches.items()))
    cells = [version, len(outcomes), verdicts["same"], f"{verdicts['known difference']}{f': {named}' if named else ''}"]
    lines = [
        "| release | programs | same | known difference | dropped as flaky | findings |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
        f"| {' | '.join(map(str, [*cells, verdicts['flaky'], verdicts['finding']]))} |",
    ]
    for outcome in outcomes:
        if outcome.verdict == "finding":
            guilty = ", ".join(name for name, reason in outcome.patches.items() if not reason)
            lines += ["", f"- `{outcome.program}`: {guilty or 'no patch alone'}"]
            lines += [f"  - stock: `{old[:300]}`\n  - patched: `{new[:300]}`" for old, new in outcome.differs[:2]]
    return "\n".join(lines) + "\n"


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tests.differential", description=differential.__doc__, formatter_class=raw)
    parser.add_argument("--release", required=True, help="of Lightning")
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 200], metavar=("FIRST", "END"))
    parser.add_argument("--only", default="", metavar="NAME", help="one program, or those of one file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the summary is written, too")
    parser.add_argument("--show", action="store_true", help="print what each program did on stock")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time")
    options = parser.parse_args()
    began = time.monotonic()
    with trial.Release(options.release) as release, ThreadPoolExecutor(options.jobs) as pool:
        found = chosen(options.release, options.seeds, options.only)
        if options.show:
            for program in found:
                print(program, *release.run(program, False).all_lines(), sep="\n")

        def judged(program: trial.Program) -> trial.Outcome:
            outcome = trial.judge(release, program)
            if outcome.verdict != "same":
                print(f"{program}: {outcome.verdict} {outcome.patches}", file=sys.stderr, flush=True)
            return outcome

        outcomes = list(pool.map(judged, found))
    text = summary(options.release, outcomes)
    print(text + f"{time.monotonic() - began:.0f} s")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return int(any(outcome.verdict == "finding" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
