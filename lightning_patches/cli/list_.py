"""List all patches of the catalogue: what each does, which releases have the bug, which release fixed it.

"Changes" tells what may differ of the results of a program that ends well without the patch: numbers, the order of
data, files, or how it ends. LIGHTNING_PATCHES=same-results selects the default patches that change none.

With --json, an array of records (see `lightning-patches show NAME --json`).
"""

from __future__ import annotations

import argparse

from lightning_patches import patches as catalogue
from lightning_patches.cli import OK, _output, _records

HELP = "all patches there are"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _records.add_group(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    patches = [patch for patch in catalogue.all_patches() if args.group in (None, patch.group)]
    if args.json:
        _output.write_json([_records.as_dict(patch) for patch in patches])
        return OK
    rows = [
        (
            patch.name,
            patch.group if patch.default else f"{patch.group}, opt-in",
            _records.affected(patch),
            _records.fixed_in(patch),
            _records.numbers(patch),
            _records.title(patch),
        )
        for patch in patches
    ]
    _output.write_table(("PATCH", "GROUP", "AFFECTED", "FIXED IN", "UPSTREAM", "WHAT IT DOES"), rows)
    return OK
