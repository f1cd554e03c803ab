"""Programs that are broken on several ranks end with the default set as on stock, and as soon.

Who removes, adds or retypes a collective takes away an alarm: ranks that part meet each other's messages, and gloo ends
them within seconds, where otherwise they wait for the group's timeout. Each patch that touches collectives has cases
here, the first of which are in the usual run.
"""

import re
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import groups
from tests.support.arms import Arm, environment_of

pytestmark = pytest.mark.distributed
PROGRAMS = Path(__file__).with_name("programs.py")
START, LIMIT, LATER = 120, 45, 15
"""Seconds: until the fault at most, after it until ranks are said to hang, and later than stock that is as soon."""
ERROR = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)\b)(?:.* terminated with (.*))?", re.MULTILINE)


class Run(NamedTuple):
    end: str
    seconds: float
    """From the fault on."""
    collectives: dict
    output: str


@cache
def run(version, case, shim, backend="gloo"):
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile("w+", errors="replace") as output:
        variables = environment_of(Arm("pytorch-lightning", version, shim))
        variables.update(BROKEN_SHIM=str(int(shim)), BROKEN_OUT=out, BROKEN_BACKEND=backend)
        process = groups.start([sys.executable, str(PROGRAMS), case], output, variables, out)
        struck, began = None, time.monotonic()
        try:
            while process.poll() is None or groups.lives(process.pid):
                now = time.monotonic()
                struck = struck or (now if Path(out, "struck").exists() else None)
                if now > (began + START if struck is None else struck + LIMIT):
                    break
                time.sleep(0.05)
            ended, status = time.monotonic(), "hangs" if groups.lives(process.pid) else f"status {process.poll()}"
        finally:
            groups.end(process.pid)
            process.wait()
        output.seek(0)
        said = output.read()
        errors = [" ".join(filter(None, found)) for found in ERROR.findall(said)]
        noted = {path.name: path.read_text().splitlines() for path in Path(out).glob("collectives?")}
        end = status if status in ("hangs", "status 0") else f"{status}, {errors[-1] if errors else 'no error'}"
        return Run(end, ended - (struck or ended), noted, said)


def assert_ends_as_on_stock(version, case, backend="gloo", may_hang=False):
    stock, shim = run(version, case, False, backend), run(version, case, True, backend)
    if stock.end == "hangs":
        assert may_hang, f"the case shows nothing: {stock}"
        return
    assert shim.end == stock.end and shim.seconds < stock.seconds + LATER, f"{stock}\n\nand with the shim\n\n{shim}"
