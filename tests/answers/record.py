"""Run the programs on their releases and write ``logs.json.gz``: what they say, in the forms in which people have it.

python tests/answers/record.py          # needs IPython and loguru in ANSWERS_SITE, and takes some ten minutes
python tests/answers/record.py whole    # those of LATER and PLAIN, whole, into whole.json.gz; PYTHON312 names one

Each program runs once on each of its releases, below a path as environments have it, and its error is written in all
forms by the tools themselves; of these each log takes one, with what launchers, schedulers and terminals do to it.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]
import _releases

from tests.answers.programs import HEAD, LATER, PLAIN, PROGRAMS, RUN, Program

SITE = Path(os.environ.get("ANSWERS_ENV", "/opt/env")) / "lib" / "python3.11" / "site-packages"
HOME = Path("/home/me/project")
SEEN = ("lightning==2.5.2", "lightning==2.3.3", "lightning==2.1.4", "pytorch-lightning==2.1.3",
        "pytorch-lightning==2.3.1", "pytorch-lightning==2.4.0")  # fmt: skip
"""Releases whose logs were looked at while diagnose was made; those of the others were not."""
EACH = 50
"""Logs of either half."""

CHILD = """
import io, json, logging, os, runpy, sys, traceback, warnings
warnings.simplefilter(os.environ["ANSWERS_WARNINGS"])
logging.getLogger("lightning.pytorch").setLevel(logging.INFO)
import loguru, torch, IPython.core.ultratb, rich.traceback, _pytest._code.code, _pytest._io
directories, script = sys.argv[2:], sys.argv[1]
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pkg_resources":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
if "no pkg_resources" in open(directories[0] + "/train.py").read():
    sys.meta_path.insert(0, Without())
elif "# fresh" not in open(directories[0] + "/train.py").read():
    exec(open(directories[0] + "/train.py").read().partition("class Numbers")[0])
for directory in directories:
    if os.fork() == 0:
        os.chdir(directory)
        os.makedirs("/home/me/project", exist_ok=True)
        open(script, "w").write(open("train.py").read())
        said = os.open("said.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        break
    os.wait()
else:
    sys.exit()
out = "out.json"
sys.argv = [script]
forms = {}
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit:
    raise
except BaseException as error:
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename != script:
        tb = tb.tb_next
    error = error.with_traceback(tb)
    forms["python"] = "".join(traceback.format_exception(error))
    from rich.console import Console
    from rich.traceback import Traceback
    text = io.StringIO()
    Console(file=text, width=100).print(Traceback.from_exception(type(error), error, tb))
    forms["rich"] = text.getvalue()
    from IPython.core import ultratb
    try:
        shown = ultratb.VerboseTB(theme_name="nocolor", include_vars=False)
        forms["ipython"] = shown.text(type(error), error, tb)
    except Exception as other:
        print("ipython", other)
    from loguru import logger
    text = io.StringIO()
    logger.remove()
    logger.add(text, colorize=False, backtrace=False, diagnose=True)
    logger.opt(exception=error).error("training failed")
    forms["loguru"] = text.getvalue()
    record = {"time": "2026-03-04T05:06:07Z", "level": "error", "message": "training failed",
              "exc_info": "".join(traceback.format_exception(error))}
    forms["json"] = json.dumps(record)
    import _pytest._code.code as code
    from _pytest._io import TerminalWriter
    for style in ("short", "long", "line"):
        try:
            info = code.ExceptionInfo.from_exception(error)
            text = io.StringIO()
            if style == "line":
                last = info.traceback[-1]
                text.write(f"{last.path}:{last.lineno + 1}: {info.exconly().splitlines()[0]}")
            else:
                info.getrepr(style=style).toterminal(TerminalWriter(text))
            forms["pytest " + style] = "=" * 30 + " FAILURES " + "=" * 30 + "\\n" + text.getvalue()
        except Exception as other:
            print("pytest", style, other)
json.dump(forms, open(out, "w"))
sys.stdout.flush(); sys.stderr.flush()
os._exit(0)
"""


PROFILED = """
import importlib.machinery, os, sys, traceback, types, unittest.mock
site, root = sys.argv[1:]
class Standin:
    "Everything but the profilers themselves, which need none of it to start."
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in (root.split(".")[0], "torch", "lightning_fabric") and "profilers." not in name + ".":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        module = unittest.mock.MagicMock()
        module.__path__, module.__spec__ = [os.path.join(site, *spec.name.split("."))], spec
        return module
    def exec_module(self, module):
        pass
sys.path.insert(0, site)
sys.meta_path.insert(0, Standin())
source = f'''
from {root}.profilers.advanced import AdvancedProfiler

def compose_whole(kept: Path, programs: tuple[Program, ...]) -> None:
    """Take the logs of LATER and PLAIN, whole."""
    rows = [json.loads(path.read_text()) for path in kept.glob("*.json")]
    logs = []
    for row in sorted(rows, key=lambda row: (row["number"], row["release"])):
        program = programs[row["number"]]
        text = row["forms"].get("python", "")
        if "# windows" in program.classes:
            text = re.sub(r'"/[^"]*"', lambda path: path.group().replace("/", "\\").replace('"', '"C:', 1), text)
        said = "" if program in PLAIN else row["said"][-4000:] + "\n"
        later = program not in PLAIN
        logs.append({"expected": program.expected, "release": row["release"], "later": later, "text": said + text})
    (HERE / "whole.json.gz").write_bytes(gzip.compress(json.dumps(logs, indent=1).encode(), 9, mtime=0))
    print(f"{len(logs)} whole logs")


def main() -> None:
    kept = Path(os.environ.get("ANSWERS_KEPT", "/tmp/answers"))
    is_whole = "whole" in sys.argv
    programs = (*LATER, *PLAIN) if is_whole else PROGRAMS
    kept = kept / "whole" if is_whole else kept
    groups: dict[tuple[str, str], list[int]] = {}
    for number, program in enumerate(programs):
        for requirements in program.releases.split():
            if not (kept / f"{number}-{requirements.replace('==', '-')}.json").exists():
                alone = program.classes.partition("\n")[0] if program.classes.startswith("# ") else ""
                groups.setdefault((requirements, alone), []).append(number)
    for (requirements, _), numbers in groups.items():
        run(numbers, requirements, kept, programs)
    if is_whole:
        compose_whole(kept, programs)
    else:
        compose(kept)


if __name__ == "__main__":
    main()
