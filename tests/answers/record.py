"""Run the programs on their releases, and write their logs in the usual formats to ``logs.json.gz``.

python tests/answers/record.py          # needs IPython, loguru and rich in ANSWERS_SITE; takes about ten minutes
python tests/answers/record.py whole    # writes LATER and PLAIN to whole.json.gz; PYTHON312 names a Python 3.12
python tests/answers/record.py exports  # writes what tools export of one error to exports.json.gz; ANSWERS_SITE also
                                        # needs nbconvert, ipykernel, pytest-html, pytest-json-report, asciinema<3

Each program runs once on each of its releases, below a typical installation path. Real tools format its error in all
formats. Each log uses one of these, with typical additions of launchers, schedulers and terminals.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import pprint
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
warnings.simplefilter("ignore")
if "ANSWERS_WARNED" in os.environ:
    warnings.simplefilter("default", UserWarning)
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


def packages(requirement: str, kept: Path) -> Path:
    """Return the directory of a requirement; ``lightning_fabric@2.0.9`` is that of pytorch-lightning 2.0.9."""
    alone = kept / requirement
    if requirement.startswith("lightning-utilities"):
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(alone), requirement]
        subprocess.run(install, check=True)
        return alone
    name, _, version = requirement.replace("@", "==").partition("==")
    if "@" not in requirement:
        return _releases.unpacked(name, version)
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir(parents=True)
    (alone / name).symlink_to(_releases.unpacked("pytorch-lightning", version) / name)
    return alone


def environment(requirements: str, kept: Path) -> None:
    """Links to the packages of the requirements, and to those of this environment, below a path that environments
    have."""
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    import torch

    asked = [packages(requirement, kept) for requirement in requirements.split("+")]
    for source in (*asked, Path(torch.__file__).parents[1], Path(os.environ["ANSWERS_SITE"])):
        for entry in source.iterdir():
            if "lightning_patches" not in entry.name and not (SITE / entry.name).exists() and entry.suffix != ".pth":
                (SITE / entry.name).symlink_to(entry)


def run(numbers: list[int], requirements: str, kept: Path, programs: tuple[Program, ...]) -> None:
    """Run programs on a release, one after the other, and keep their errors in all forms."""
    environment(requirements, kept)
    named = next(one for one in requirements.split("+") if one.startswith(("lightning==", "pytorch-lightning==")))
    root = "lightning.pytorch" if named.startswith("lightning==") else "pytorch_lightning"
    directories = []
    for number in numbers:
        program = programs[number]
        directories.append(kept / f"{number}-{requirements.replace('==', '-')}")
        shutil.rmtree(directories[-1], ignore_errors=True)
        directories[-1].mkdir(parents=True)
        source = HEAD + program.classes + RUN.replace("{BODY}", "    " + (program.body or "pass"))
        if "no pkg_resources" in program.classes:
            source = program.classes + HEAD + RUN.replace("{BODY}", "    pass")
        (directories[-1] / "train.py").write_text(source.replace("{P}", root))
    if "# python 3.12" in programs[numbers[0]].classes:
        command = [os.environ["PYTHON312"], str(HERE / "profiled.py"), str(SITE), root]
        text = plain(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        text = text.replace("python3.11", "python3.12")
        row = {"number": numbers[0], "release": requirements, "forms": {"python": text}, "said": ""}
        Path(f"{directories[0]}.json").write_text(json.dumps(row))
        return
    arguments = ["-", str(HOME / "train.py"), *map(str, directories)]
    code = f"import sys; sys.path[:0] = [{str(SITE)!r}]; sys.argv = {arguments!r}; exec({CHILD!r})"
    is_warned = programs is not PROGRAMS
    environ = {**os.environ, **({"ANSWERS_WARNED": "1"} if is_warned else {})}
    subprocess.run([sys.executable, "-I", "-c", code], cwd="/tmp", timeout=900, env=environ)
    for number, directory in zip(numbers, directories):
        said = (directory / "said.txt").read_text() if (directory / "said.txt").exists() else ""
        found = directory / "out.json"
        forms = json.loads(found.read_text()) if found.exists() else {}
        said = "\n".join(line for line in said.splitlines() if is_warned or "warn" not in line.lower())
        if not forms:
            print("no error:", programs[number].expected, requirements, said[-500:])
        forms = {name: plain(text) for name, text in forms.items()}
        row = {"number": number, "release": requirements, "forms": forms, "said": plain(said)}
        Path(f"{directory}.json").write_text(json.dumps(row))
        print(
            number,
            programs[number].expected,
            requirements,
            forms.get("python", "").strip().splitlines()[-1:],
            flush=True,
        )


def plain(text: str) -> str:
    """Without what is of this machine."""
    text = re.sub(r"/[\w./-]*/\.pyenv/versions/[\d.]+/lib", "/usr/lib", text)
    text = re.sub(r"/[\w./-]*/\d+-(?:pytorch-)?lightning-[\d.]+(?:post\d)?(?=/)", str(HOME), text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def prefixed(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


def wrapped(text: str) -> str:
    """As a terminal of 80 columns breaks it."""
    return "\n".join(line[at : at + 80] for line in text.splitlines() for at in range(0, len(line) or 1, 80))


def two_ranks(text: str) -> str:
    """Two ranks that end in the same way, line by line."""
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines() for rank in (0, 1))


def docker(text: str) -> str:
    rows = ({"log": f"{line}\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"} for line in text.splitlines())
    return "".join(json.dumps(row) + "\n" for row in rows)


def error_file(text: str) -> str:
    """As torchrun's workers write it for their agent."""
    message = {"message": text.strip().splitlines()[-1], "extraInfo": {"py_callstack": text, "timestamp": "1760000000"}}
    return json.dumps({"message": message})


BARS = "".join(
    f"Epoch 0:  {n}%|{'#' * (n // 10):10}| {n}/100 [00:1{n % 10}<00:20, 3.1it/s]\r" for n in range(0, 100, 9)
)
WAYS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("python", "python", str),
    ("rich", "rich", str),
    ("torchrun", "python", prefixed("[rank0]: ")),
    ("ipython", "ipython", str),
    ("srun", "python", prefixed("0: ")),
    ("pytest short", "pytest short", str),
    ("end", "python", lambda text: "\n".join(text.splitlines()[-10:])),
    ("json", "json", str),
    ("wrapped", "python", wrapped),
    ("loguru", "loguru", str),
    ("time", "python", prefixed("2026-01-02T03:04:05.123456789Z stderr F ")),
    ("pytest long", "pytest long", str),
    ("two ranks", "python", two_ranks),
    ("quoted", "python", prefixed("> ")),
    ("docker", "python", docker),
    ("error file", "python", error_file),
    ("bars", "python", lambda text: BARS + "\n" + text),
    ("colours", "python", lambda text: re.sub(r"(File|line|Error)", "\x1b[1;31m\\1\x1b[0m", text)),
)
"""Name, the form that it begins with, and what becomes of that."""


def github(text: str) -> str:
    """As ``gh run view --log`` prints it."""
    return "".join(f"test (3.11)\tRun pytest\t2026-01-02T03:04:05.1234567Z {line}\n" for line in text.splitlines())


def table(
    delimiter: str, quoting: int = csv.QUOTE_MINIMAL, is_whole: bool = True, more: tuple[str, ...] = ("node1",)
) -> Callable[[str], str]:
    """As a table with the whole text in one cell, or with a row for each line."""

    def write(text: str) -> str:
        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator="\n")
        writer.writerow(["time", "message", "host"][: 2 + len(more)])
        writer.writerows([number, line, *more] for number, line in enumerate([text] if is_whole else text.splitlines()))
        return file.getvalue()

    return write


def escaped_column(text: str) -> str:
    """As databases write a column."""
    cell = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return f"1\tINFO\tstarted\tnode1\n2\tERROR\t{cell}\tnode1\n"


def recording(version: int) -> Callable[[str], str]:
    """As asciinema describes its formats 1 and 3."""

    def write(text: str) -> str:
        shown = text.replace("\n", "\r\n")
        parts = [shown[at : at + 37] for at in range(0, len(shown), 37)]
        if version == 1:
            return json.dumps({"version": 1, "width": 80, "height": 24, "stdout": [[0.25, part] for part in parts]})
        head = json.dumps({"version": 3, "term": {"cols": 80, "rows": 24}})
        return "\n".join([head, *(json.dumps([0.25, "o", part]) for part in parts), '[0.1, "x", "1"]\n'])

    return write


WRAPPED: dict[str, Callable[[str], bytes]] = {
    name: (lambda text, wrap=wrap: made if isinstance(made := wrap(text), bytes) else made.encode())
    for name, wrap in {
        "gzip": lambda text: gzip.compress(text.encode()),
        "bzip2": lambda text: bz2.compress(text.encode()),
        "xz": lambda text: lzma.compress(text.encode()),
        "lzma": lambda text: lzma.compress(text.encode(), lzma.FORMAT_ALONE),
        "gzip of xz": lambda text: gzip.compress(lzma.compress(text.encode())),
        "gzip in two parts": lambda text: gzip.compress(text[:200].encode()) + gzip.compress(text[200:].encode()),
        "gzip of UTF-16": lambda text: gzip.compress(text.encode("utf-16")),
        "gzip of Docker": lambda text: gzip.compress(docker(text).encode()),
        "gh run view --log": github,
        "a string of JSON": json.dumps,
        "a string of JSON in another": lambda text: json.dumps(json.dumps(text)),
        "JSON in JSON": lambda text: json.dumps({"log": json.dumps({"level": "error", "msg": f"failed: {text}"})}),
        "logfmt": lambda text: f'time="2026-01-02" level=error msg={json.dumps(text)} caller=main.go\n',
        "repr": repr,
        "repr of bytes": lambda text: repr(text.encode()),
        "repr of lines": lambda text: repr(text.splitlines(keepends=True)),
        "repr of lines without ends": lambda text: repr(text.splitlines()),
        "pprint": pprint.pformat,
        "pprint of lines": lambda text: pprint.pformat(text.splitlines(keepends=True)),
        "CSV, a cell": table(","),
        "CSV, lines": table(",", is_whole=False),
        "CSV, all quoted": table(",", csv.QUOTE_ALL, is_whole=False),
        "CSV, the last column": table(",", csv.QUOTE_ALL, is_whole=False, more=()),
        "TSV, the last column": table("\t", is_whole=False, more=()),
        "CSV with semicolons": table(";"),
        "TSV, a cell": table("\t"),
        "TSV, lines": table("\t", is_whole=False),
        "TSV, escaped": escaped_column,
        "asciinema 1": recording(1),
        "asciinema 3": recording(3),
        "JUnit with CDATA": lambda text: (
            f"<testsuite><testcase name='a'><system-err><![CDATA[{text}]]></system-err></testcase></testsuite>"
        ),
    }.items()
}
"""What else is done to a traceback before `diagnose` gets it."""

NOTEBOOK_FORMATS = ("html", "slides", "markdown", "rst", "asciidoc")
PYTEST_STYLES = ("auto", "long", "short", "native", "line", "no")
EXPORTED = "plain-state-dict"


def exports(kept: Path) -> None:
    """Run one program in a notebook, below pytest and in a recorded terminal, and keep what these tools write."""
    environment("lightning==2.2.5", kept)
    program = next(one for one in PROGRAMS if one.expected == EXPORTED)
    HOME.mkdir(parents=True, exist_ok=True)
    head = HEAD.replace("{P}", "lightning.pytorch")
    (HOME / "train.py").write_text(head + RUN.replace("{BODY}", f"    {program.body}"))
    (HOME / "test_train.py").write_text(f"{head}\ndef test_fit():\n    {program.body}\n")
    cells = [head, program.body.replace("\n    ", "\n")]
    cells_ = [{"cell_type": "code", "execution_count": None, "id": f"cell{number}", "metadata": {}, "outputs": [],
               "source": cell} for number, cell in enumerate(cells)]  # fmt: skip
    notebook = {"cells": cells_, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (HOME / "train.ipynb").write_text(json.dumps(notebook))
    shared = Path(os.environ["ANSWERS_SITE"]).parents[2] / "share" / "jupyter"
    environ = {**os.environ, "PYTHONPATH": str(SITE), "LIGHTNING_PATCHES": "0",
               "JUPYTER_PATH": f"{kept}/share/jupyter{os.pathsep}{shared}"}  # fmt: skip

    def call(*arguments: str) -> str:
        command = [sys.executable, "-W", "ignore", "-m", *arguments]
        return subprocess.run(command, cwd=HOME, env=environ, stdout=subprocess.PIPE, text=True, timeout=900).stdout

    forms = {}
    for style in PYTEST_STYLES:
        options = ["-q", "-p", "no:cacheprovider", f"--tb={style}", "--junitxml=report.xml", "test_train.py"]
        forms[f"pytest --tb={style}"] = call("pytest", *options)
        forms[f"JUnit --tb={style}"] = (HOME / "report.xml").read_text()
    call("pytest", "-q", "--html=report.html", "--self-contained-html", "test_train.py")
    forms["pytest-html"] = (HOME / "report.html").read_text()
    call("pytest", "-q", "--json-report", "--json-report-file=report.json", "test_train.py")
    forms["pytest-json-report"] = (HOME / "report.json").read_text()
    call("ipykernel", "install", "--name", "answers", "--prefix", str(kept))
    run_ = [
        "--execute",
        "--allow-errors",
        "--ExecutePreprocessor.kernel_name=answers",
        "--output",
        "ran",
        "train.ipynb",
    ]
    call("nbconvert", "--to", "notebook", *run_)
    forms["notebook"] = (HOME / "ran.ipynb").read_text()
    for name in NOTEBOOK_FORMATS:
        forms[f"nbconvert --to {name}"] = call("nbconvert", "--to", name, "--stdout", "ran.ipynb")
    call("asciinema", "rec", "-q", "--overwrite", "-c", f"{sys.executable} train.py", "terminal.cast")
    forms["asciinema 2"] = (HOME / "terminal.cast").read_text()
    # without the scripts and styles of the tools
    inserted = re.compile(r"(<(script|style)\b[^>]*>).*?(?=</\2)", re.DOTALL)
    forms = {name: inserted.sub(r"\1", plain(text)) + "\n" for name, text in forms.items()}
    data = json.dumps({"expected": EXPORTED, "release": "2.2.5", "forms": forms}, indent=1).encode()
    (HERE / "exports.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{len(forms)} exports, {len(data)} bytes")


def compose(kept: Path) -> None:
    """Take the logs: each program on each release in one way, and some in a second one."""
    rows = [json.loads(path.read_text()) for path in kept.glob("*.json")]
    rows = sorted((row for row in rows if row["forms"]), key=lambda row: (row["release"], row["number"]))
    logs = []
    for seen in (True, False):
        half = [row for row in rows if (row["release"] in SEEN) is seen]
        for at in range(EACH):
            row, (way, form, change) = half[at % len(half)], WAYS[(at + at // len(half) * 5) % len(WAYS)]
            text = row["forms"].get(form) or row["forms"]["python"]
            said = "\n".join(
                line for line in row["said"].splitlines() if "ipython" not in line and "pytest" not in line
            )
            before = said[-1500:] + "\n" if form == way == "python" else ""
            logs.append(
                {
                    "expected": PROGRAMS[row["number"]].expected,
                    "release": row["release"].partition("+")[0],
                    "way": way,
                    "seen": seen,
                    "text": before + change(text),
                }
            )
    data = json.dumps(logs, indent=1).encode()
    with open(HERE / "logs.json.gz", "wb") as file:
        file.write(gzip.compress(data, 9, mtime=0))
    print(f"{len(logs)} logs of {len(rows)} errors, {len(data)} bytes")


def compose_whole(kept: Path, programs: tuple[Program, ...]) -> None:
    """Write the logs of LATER with all output before the error, and those of PLAIN without it."""
    rows = [json.loads(path.read_text()) for path in kept.glob("*.json")]
    logs = []
    for row in sorted(rows, key=lambda row: (row["number"], row["release"])):
        program = programs[row["number"]]
        text = row["forms"].get("python", "")
        if "# windows" in program.classes:
            text = re.sub(r"  File .*of_a_wheel_for_windows\n.*\n", "", text)  # which is no Python on Windows
            text = re.sub(r'"/([^"]*)"', lambda path: '"C:\\' + path[1].replace("/", "\\") + '"', text)
        text = text if program in PLAIN else row["said"][-4000:] + "\n" + text
        logs.append(
            {
                "expected": program.expected,
                "release": row["release"],
                "has_one_line": program in PLAIN,
                "text": text,
            }
        )
    (HERE / "whole.json.gz").write_bytes(gzip.compress(json.dumps(logs, indent=1).encode(), 9, mtime=0))
    print(f"{len(logs)} whole logs")


def main() -> None:
    kept = Path(os.environ.get("ANSWERS_KEPT", "/tmp/answers"))
    if sys.argv[1:] == ["exports"]:
        exports(kept)
        return
    is_whole = sys.argv[1:] == ["whole"]
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
