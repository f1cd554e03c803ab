"""Let faults happen to real ranks, and write down what the hang watch says of each, and how the job ends.

    scripts/prove hang_faults                  # all of them: some 20 minutes on two cores
    scripts/prove hang_faults sleep killed     # these, and keep what the record has of the others
    scripts/prove hang_faults --try sleep      # write no record

Exit status 1 if one is not as a perfect tool would have it.
"""

import argparse
import concurrent.futures
import json
import os
from typing import Any

from tests.distributed import hang_faults
from tests.equivalence import evidence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="FAULT", choices=[[], *hang_faults.FAULTS])
    parser.add_argument("--jobs", type=int, default=1, help="faults at the same time (default 1)")
    parser.add_argument("--try", action="store_true", dest="tried", help="write no record")


def run(options: argparse.Namespace) -> int:
    record = hang_faults.RECORD
    kept: dict[str, dict[str, Any]] = {}
    if options.names and record.exists():
        kept = {row["name"]: row for row in json.loads(record.read_text(encoding="utf-8"))["faults"]}
    head = {**evidence.surroundings("CPU"), "processors": os.cpu_count()}
    commit = evidence.commit("lightning_patches", "tests")
    worst = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(hang_faults.run, name) for name in options.names or hang_faults.FAULTS]
        for done in concurrent.futures.as_completed(running):
            row = {**done.result(), "commit": commit}
            kept[row["name"]] = row
            right = hang_faults.is_as_it_has_to_be(row)
            worst |= not right
            print("right" if right else "WRONG", json.dumps(row, ensure_ascii=False), flush=True)
            if not options.tried:
                rows = [kept[name] for name in hang_faults.FAULTS if name in kept]
                lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
                told = "".join(f' "{name}": {json.dumps(value)},\n' for name, value in head.items())
                record.write_text(f'{{\n{told} "faults": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
    return worst
