"""Check that a resumed run equals the uninterrupted run, on stock and with patches.

    python -m tests.differential.resume --release 2.6.6                    # counts, a minute for each set
    python -m tests.differential.resume --release 2.2.5 --sets all --show  # and what differs
    python -m tests.differential.resume --release 2.6.6 --only plain "StepLR by epoch"

``resuming.py`` has the configurations, the places where each is stopped, and the compared values. ``--program
sampling.py`` checks the samples that the ranks see.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")

from tests.support.run import execute
from tests.support.variants import Variant, distribution_of, environment_of

SETS = ("stock", "default", "all")
"""Sets of patches: stock, or values of ``LIGHTNING_PATCHES``."""

Differences = dict[str, Any]
"""By configuration, what differs. With ``resuming.py``, by stop: the first event that differs in the uninterrupted and
in the resumed run, and True if this package has warned."""


def differences(
    version: str, patches: str, names: tuple[str, ...] = (), limit: float = 600, program: str = "resuming.py"
) -> Differences:
    """Run configurations on a release with a set of patches; all of them if no names are given."""
    variant = Variant(distribution_of(version), version, shim=patches != "stock")
    variables = environment_of(variant, toggle=None if patches == "stock" else f"{patches},quiet")
    variables["SCENARIO_SHIM"] = str(int(variant.shim))
    path = Path(__file__).with_name(program)
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, "differences")
        status, text = execute([sys.executable, str(path), output, *names], variables, limit, directory)
        if status:
            raise RuntimeError(f"{program} ended with status {status}:\n{text[-3000:]}")
        found: Differences = json.loads(Path(output).read_text(encoding="utf-8"))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        "tests.differential.resume", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", required=True, help="of Lightning")
    parser.add_argument("--sets", nargs="+", default=SETS, help="stock, or values of LIGHTNING_PATCHES")
    parser.add_argument("--program", default="resuming.py", help="sampling.py for the law of data")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="configurations")
    parser.add_argument("--show", action="store_true", help="print what differs")
    options = parser.parse_args()
    print("| release | patches | configurations | differ |\n| --- | --- | ---: | ---: |")
    for patches in options.sets:
        found = differences(options.release, patches, tuple(options.only), program=options.program)
        differing = {name: stops for name, stops in found.items() if stops}
        print(f"| {options.release} | {patches} | {len(found)} | {len(differing)} |", flush=True)
        for name, stops in differing.items() if options.show else ():
            for stop, (expected, resumed, _) in stops.items():
                print(f"  {name}, {stop}: {str(expected)[:100]} -> {str(resumed)[:100]}")


if __name__ == "__main__":
    main()
