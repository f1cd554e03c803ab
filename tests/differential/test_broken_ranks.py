"""Programs that are broken on several ranks end as on stock with the default set, and as fast.

If the collectives of the ranks do not match, gloo ends them within seconds; without this mismatch they would wait for
the group's timeout. So a patch that removes, adds or retypes a collective may delay the end of a broken job. Each such
patch has cases here. The first ones are part of the usual run.
"""

import re
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.run import end, lives, start
from tests.support.variants import Variant, environment_of

pytestmark = pytest.mark.distributed
PROGRAMS = Path(__file__).with_name("programs") / "broken_ranks.py"
START, LIMIT, LATER = 120, 30, 15
"""Seconds: maximum until the fault, from the fault until ranks count as hanging, and allowed delay after stock."""
ERROR = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)\b)(?:.* terminated with (.*))?", re.MULTILINE)


class Run(NamedTuple):
    end: str
    seconds: float
    """From the fault on."""
    collectives: dict
    output: str


@cache
def run(version, case, shim, backend="gloo", toggle=None):
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile("w+", errors="replace") as output:
        variables = environment_of(Variant("pytorch-lightning", version, shim), toggle=toggle)
        variables.update(BROKEN_SHIM=str(int(shim)), BROKEN_OUT=out, BROKEN_BACKEND=backend)
        process = start([sys.executable, str(PROGRAMS), case], output, variables, out)
        struck, began = None, time.monotonic()
        try:
            while process.poll() is None or lives(process.pid):
                now = time.monotonic()
                struck = struck or (now if Path(out, "struck").exists() else None)
                if now > (began + START if struck is None else struck + LIMIT):
                    break
                time.sleep(0.05)
            ended, status = time.monotonic(), "hangs" if lives(process.pid) else f"status {process.poll()}"
        finally:
            end(process.pid)
            process.wait()
        output.seek(0)
        printed = output.read()
        errors = [" ".join(filter(None, found)) for found in ERROR.findall(printed)]
        noted = {path.name: path.read_text().splitlines() for path in Path(out).glob("collectives?")}
        ending = status if status in ("hangs", "status 0") else f"{status}, {errors[-1] if errors else 'no error'}"
        return Run(ending, ended - (struck or ended), noted, printed)


def assert_ends_as_on_stock(version, case, backend="gloo"):
    """Ranks that hang on stock may hang with the shim, but must not succeed."""
    stock, shim = run(version, case, False, backend), run(version, case, True, backend)
    messages = f"{stock}\n\nand with the shim\n\n{shim}"
    if stock.end == "hangs":
        assert shim.end != "status 0", messages
    else:
        assert shim.end == stock.end and shim.seconds < stock.seconds + LATER, messages


ANYWHERE = ("raises", "killed", "exits", "skips", "logs", "gathers", "waits", "saves")
CASES = {
    "sigterm-at-batch-boundary": {"2.6.6": ("uneven", "stops", "stops-logged", "stops-each", "uneven-logged",
     "ends_epoch"), "2.5.2": ("uneven", "stops", "raises")},
    "validation-after-short-epoch": {"2.6.6": ("uneven-sized",), "2.5.2": ("uneven-sized",)},
    "synced-mean-batch-sizes": {"2.2.5": ("stops-each", "stops-plain-each", "uneven-plain-each"),
     "2.0.9": ("stops-each", "uneven-plain-each")},
    "checkpoint-exists-on-rank-zero": {"2.5.2": ("uneven-kept",), "2.2.5": ("uneven-each-kept", "stops-each-kept")},
    "fabric-submodule-sync": {"2.6.6": ("raises-fabric-parts", "killed-fabric-parts")},
    "ddp-static-graph-manual": {"2.6.6": ("raises-static",)},
    "ddp-evaluation-same-weights": {"2.0.1": ("raises-evaluated",)},
    "tuner-cleanup-on-error": {"2.2.5": ("raises-searched",)},
    "lr-finder-skipped-batch": {"2.0.6": ("skips-searched",)},
    "": {"2.6.6": (*ANYWHERE, "raises-validated", "stops-validated", "waits-validated", "logs-each", "uneven-fabric"),
     "2.2.5": (*ANYWHERE, "ends_epoch"), "2.0.9": ("raises", "logs-each")},
}  # fmt: skip
"""By the patch that touches a collective, at the ends of its range; the last are for all patches together."""


@pytest.mark.parametrize(
    ("patch", "version", "case"),
    [(patch, version, case) for patch, of in CASES.items() for version, cases in of.items() for case in cases],
)
def test_broken_ranks_end_as_on_stock(patch, version, case):
    assert_ends_as_on_stock(version, case)


@pytest.mark.parametrize("version", ["2.6.6", "2.5.2", "2.2.5", "2.0.9"])
def test_working_program_has_the_collectives_of_stock(version):
    """Two differences are allowed: a count is a float of the same size, and checkpoints are looked up as in 2.6.0."""
    case, toggle = "nothing-logged-each-kept-sized", "-checkpoint-exists-on-rank-zero"
    stock, shim = run(version, case, False), run(version, case, True, toggle=toggle)
    found = {rank: [what.replace("float64[]", "int64[]") for what in seen] for rank, seen in shim.collectives.items()}
    assert stock.end == shim.end == "status 0" and len(found) == 2 and found == stock.collectives
