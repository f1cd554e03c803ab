"""Makes the virtual environment in which the demo and the tests run: once, from ``setup.cfg``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
TORCH = "torch==2.13.0"
"""Asked for alone and exactly: the simulated CUDA device is built against this release's headers."""

TAKES = (
    "Takes a few minutes and 1.2 GB of disk once: .venv/ with torch (183 MB to download, the build for CPUs) and what "
    "the tests import. Lightning's releases, up to 15 MB each, go to ~/.cache/lightning-patches-tests when they are "
    "needed."
)


def run(command: list[str], **more: Any) -> int:
    """Run a command to its end. After Ctrl-C it has ten seconds to end by itself, and nothing of it is left running.

    Raises:
        KeyboardInterrupt: by Ctrl-C, when the command has ended.
    """
    process = subprocess.Popen(command, start_new_session=True, **more)
    try:
        return process.wait()
    except BaseException:
        groups = groups_below(process.pid)
        for number, patience in ((signal.SIGINT, 10), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            try:
                os.killpg(process.pid, number)
                process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        raise


def groups_below(ancestor: int) -> set[int]:
    """The process groups of all that a process has started: tests start programs in groups of their own."""
    shown = subprocess.run(
        ["ps", "-A", "-o", "ppid=", "-o", "pid=", "-o", "pgid="], stdout=subprocess.PIPE, text=True
    ).stdout
    rows = [tuple(map(int, line.split())) for line in shown.splitlines()]
    found, parents = set(), {ancestor}
    while parents:
        children = [row[1:] for row in rows if row[0] in parents]
        parents = {process for process, _ in children}
        found |= {group for _, group in children}
    return found


def enter() -> None:
    """Go on in the virtual environment: start this program again with its Python, unless it is this one. Where there is
    none, it is made."""
    if Path(sys.prefix).resolve() != VENV.resolve():
        python = VENV / "bin" / "python"
        if not python.exists():
            set_up()
        os.execv(python, [str(python), *sys.argv])


def recipe(root: Path) -> str:
    """What an environment for a checkout is made from."""
    return hashlib.sha256(f"{root} {TORCH}\n".encode() + (root / "setup.cfg").read_bytes()).hexdigest()


def set_up(venv: Path = VENV, torch_index: str = "") -> Path:
    """Make the virtual environment, unless it is there and up to date, and install into it.

    Args:
        venv: its directory.
        torch_index: package index to take torch from; empty for pip's own.

    Returns:
        Its Python.

    Raises:
        SystemExit: something could not be installed; pip's message is on the terminal.
    """
    python = venv / "bin" / "python"
    stamp = venv / "lightning-patches"
    if python.exists() and stamp.exists() and stamp.read_text() == recipe(ROOT):
        return python
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print(TAKES, flush=True)
    if not python.exists():
        print(f"Making {venv}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", str(venv)], cwd=ROOT, env=environment).returncode:
            sys.exit("No virtual environment could be made. On Debian and Ubuntu, `apt install python3-venv` helps.")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    # torch first and alone: nothing that comes later has a say in which torch it is.
    torch = [TORCH, *(["--index-url", torch_index] if torch_index else [])]
    for command in ([*pip, "pip>=22.2"], [*pip, *torch], [*pip, "--editable", f"{ROOT}[test]"]):
        if command == [*pip, *torch]:
            refuse_cuda(command, environment)
        print("$", " ".join(command), flush=True)
        if run(command, cwd=ROOT, env=environment):
            sys.exit("The installation failed; see pip's message above.")
    stamp.write_text(recipe(ROOT))
    return python


def refuse_cuda(command: list[str], environment: dict[str, str]) -> None:
    """Stop before a build of torch for CUDA is installed: gigabytes, and no GPU can be simulated on it.
    The dry run reads metadata alone, where the index has it apart from the files, as PyPI does.

    Args:
        command: pip's, to install torch.
        environment: variables for it.

    Raises:
        SystemExit: it would install such a build, or it fails.
    """
    reported = [*command, "--dry-run", "--report", "-"]
    dry_run = subprocess.run(reported, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    if dry_run.returncode:
        sys.exit("torch cannot be installed; see pip's message above.")
    found = [item["metadata"] for item in json.loads(dry_run.stdout)["install"]]
    if any(one["name"].lower().startswith(("nvidia", "cuda")) or "+cu" in one["version"] for one in found):
        sys.exit(
            f"Give an index that has torch for CPUs: {sys.argv[0]} --torch-index URL (PyTorch's page "
            "on installation names the one for CPUs).\npip's index has the build for CUDA. Nothing of it was installed."
        )
