"""Make the virtual environment in which the demo and the tests run, from ``setup.cfg``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
TORCH = "torch==2.13.0"
"""Installed alone and exactly: the simulated CUDA device is built against this release's headers."""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's index of builds for CPUs. For Linux, PyPI has the builds for CUDA."""
PIP = "pip>=25.3,<27"
"""From 25.3 on, a dry run downloads no wheel. The upper bound keeps ``--use-feature=fast-deps`` valid."""

TAKES = (
    "The first run takes a few minutes and 1.2 GB of disk for .venv/, which has torch (183 MB to download, the build "
    "for CPUs) and what the tests import. Lightning's releases, up to 15 MB each, go to "
    "~/.cache/lightning-patches-tests when they are needed."
)


def run(command: list[str], **more: Any) -> int:
    """Run a command and return its exit status. Ctrl-C gives it ten seconds, then kills all that it started.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when the command has ended.
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
    """Return the process groups of a process's descendants, or an empty set if the system has no ``ps``.

    Tests start programs in new groups.
    """
    if shutil.which("ps") is None:
        return set()
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
    """Restart this program with the Python of the virtual environment. Make the environment if it is missing."""
    if Path(sys.prefix).resolve() != VENV.resolve():
        python = VENV / "bin" / "python"
        if not python.exists():
            set_up()
        os.execv(python, [str(python), *sys.argv])


def recipe(root: Path) -> str:
    """Return a digest that changes when the environment must be updated."""
    return hashlib.sha256(f"{root} {TORCH}\n".encode() + (root / "setup.cfg").read_bytes()).hexdigest()


def set_up(venv: Path = VENV, torch_index: str = "") -> Path:
    """Make the virtual environment, or update it if ``setup.cfg`` has changed.

    Args:
        venv: its directory.
        torch_index: package index to take torch from; empty for pip's index, then PyTorch's index for CPUs.

    Returns:
        Its Python.

    Raises:
        SystemExit: an installation failed. pip's message is on the terminal.
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
            sys.exit("The virtual environment could not be made. On Debian and Ubuntu, `apt install python3-venv`.")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-qq"]

    def install(*requirements: str) -> None:
        print("$", " ".join([*pip, *requirements]), flush=True)
        if run([*pip, *requirements], cwd=ROOT, env=environment):
            sys.exit("The installation failed; see pip's message above.")

    install(PIP)
    # torch comes first and alone, so that no other requirement chooses its build.
    install(TORCH, *torch_source(pip, environment, torch_index))
    install("--editable", f"{ROOT}[test]")
    stamp.write_text(recipe(ROOT))
    return python


def torch_source(pip: list[str], environment: dict[str, str], torch_index: str = "") -> list[str]:
    """Return the options with which pip installs torch. They select a build for CPUs if any index has one.

    Otherwise print the download size of the first build found. The simulated CUDA device needs the build for CPUs.

    Args:
        pip: the command that installs.
        environment: its variables.
        torch_index: the only index to try; empty for pip's index, then PyTorch's index for CPUs.

    Raises:
        SystemExit: no index has torch. pip's messages are on the terminal.
    """
    found, errors = [], []
    for index in [torch_index] if torch_index else ["", CPU_INDEX]:
        options = ["--index-url", index] if index else []
        # pip reads metadata only: files that the index serves beside the wheels, or (fast-deps) a part of each wheel.
        dry_run = [*pip, "--retries=1", "--use-feature=fast-deps", "--dry-run", "--report=-", TORCH, *options]
        done = subprocess.run(dry_run, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            errors.append(done.stderr)
            continue
        packages = json.loads(done.stdout)["install"]
        if not any(is_for_gpus(package["metadata"]) for package in packages):
            return options
        found.append((options, packages))
    if not found:
        sys.exit("\n".join([*errors, "torch can't be installed; see pip's messages above."]))
    options, packages = found[0]
    print(
        f"No index here has torch for CPUs: pip downloads {size_of(packages)}, torch for CUDA. What needs simulated "
        "GPUs will be skipped. To avoid both, stop this and give --torch-index URL.",
        flush=True,
    )
    return options


def is_for_gpus(metadata: dict[str, Any]) -> bool:
    """Return True for CUDA's libraries, and for a torch whose version names another device than ``cpu``."""
    name, local = metadata["name"].lower(), metadata["version"].partition("+")[2]
    return name.startswith(("nvidia", "cuda")) or (name == "torch" and local not in ("", "cpu"))


def size_of(packages: list[dict[str, Any]]) -> str:
    """Return the download size of the packages in a report of pip, in words."""
    total = 0
    for package in packages:
        request = urllib.request.Request(package["download_info"]["url"], method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                total += int(answer.headers["Content-Length"])
        except Exception:  # whatever it is, the installation can go on
            return "an unknown size"
    return f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
