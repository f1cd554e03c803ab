"""Run a program with the patches on, in every process that it starts.

  lightning-patches run train.py ARGS...
  lightning-patches run -m package.train ARGS...
  lightning-patches run -- torchrun --nproc-per-node 2 train.py ARGS...

This Python runs a file whose name ends in .py, a directory or archive with a __main__, and a script that is not
executable. Everything else is run as a command. A name without a slash that does not end in .py is looked up on PATH
first: write ./NAME for a directory, archive or script of that name in the working directory. The program replaces this
process, so you get its exit status, and signals reach it.

--patches SPEC sets LIGHTNING_PATCHES for the program. Without it, LIGHTNING_PATCHES is unchanged, or 1 if it is not
set. The patches act only in the Python environment that this command belongs to. If the program starts the Python of
another environment, or a Python with -I or -E, that Python is not patched.

exit status, if the program cannot be started:
  2    LIGHTNING_PATCHES or the command line names something that does not exist
  126  the program was found and cannot be executed, or is a directory without a __main__.py
  127  the program was not found
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, Optional

from lightning_patches import notices, permissions
from lightning_patches.activation import startup
from lightning_patches.cli import _files, _output
from lightning_patches.cli._exit_status import OK, UsageError
from lightning_patches.engine.toggle import VARIABLE, parse
from lightning_patches.patches import all_patches

HELP = "run a program, and patch every process that it starts"
USAGE = "lightning-patches run [--patches SPEC] [--] SCRIPT|-m MODULE|COMMAND ..."
LAUNCHER = Path(startup.LAUNCHER)
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # `split` parses the options, since argparse would also parse those of the program. The prefix character "\0" makes
    # argparse treat them as plain arguments.
    parser.usage, parser.epilog, parser.prefix_chars = USAGE, None, "\0"
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(show_help=parser.print_help)


def run(args: argparse.Namespace) -> int:
    options, program = split(args.arguments)
    if options.help:
        args.show_help()
        return OK
    if not program:
        raise UsageError(f"run: no program given. Usage: {USAGE}")
    directory = LAUNCHER
    unsafe = why_unsafe(directory)
    if unsafe:
        raise UsageError(
            f"run: {directory} cannot be put on PYTHONPATH: {unsafe}. Put "
            "`import lightning_patches` at the top of the script instead."
        )
    command = _command(program)
    if command is None and os.path.isdir(program[0]):
        _output.complain(f"lightning-patches: run: {program[0]}: it is a directory and has no `__main__.py`")
        return NOT_EXECUTABLE
    if command is None:
        _output.complain(f"lightning-patches: run: {program[0]}: not found")
        return NOT_FOUND
    environment = child_environment(os.environ, directory, options.patches)
    foreign = _foreign_python(command[0])
    if foreign:
        notices.say(
            f"{os.path.basename(command[0])} runs {foreign}, which is outside of this environment ({sys.prefix}), "
            "so it will not be patched. Use the `lightning-patches` of that Python."
        )
    return _replace_process(command, environment)


def split(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Split the arguments into the options of ``run`` and the program with its arguments.

    Raises:
        UsageError: an unknown option, or ``--patches`` without a value.
    """
    options = argparse.Namespace(help=False, patches=None)
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        option = rest.pop(0)
        if option == "--":
            break
        if option in ("-h", "--help"):
            options.help = True
        elif option == "--patches" and rest:
            options.patches = rest.pop(0)
        elif option.startswith("--patches="):
            options.patches = option.partition("=")[2]
        elif option == "--patches":
            raise UsageError("run: --patches needs a value, such as `--patches default,strict`")
        else:
            raise UsageError(f"run: there is no option {_output.cut(option)!r}. Usage: {USAGE}")
    return options, rest


def child_environment(base: Mapping[str, str], directory: Path, patches: Optional[str]) -> dict[str, str]:
    """Return the environment variables of the program.

    Args:
        base: the variables of this process.
        directory: directory of our ``sitecustomize``.
        patches: value of ``--patches``.

    Raises:
        ToggleError: a requested patch does not exist.
    """
    environment = dict(base)
    environment.pop(startup.INSPECT_ONLY, None)
    spec = patches if patches is not None else environment.get(VARIABLE, "")
    environment[VARIABLE] = (parse(spec, all_patches()).spec or "1").strip()
    environment[startup.LAUNCHED_FOR] = startup.this_python()
    # Keep the user's entries. An empty PYTHONPATH counts as unset: it must not become an empty entry, which means the
    # current directory.
    others = environment.get("PYTHONPATH", "")
    if others:
        others = os.pathsep.join(item for item in others.split(os.pathsep) if item != str(directory))
    environment["PYTHONPATH"] = f"{directory}{os.pathsep}{others}" if others else str(directory)
    return environment


def why_unsafe(directory: Path) -> str:
    """Return the reason why Python must not import from a directory; "" if it may.

    It must not if users can write to the directory who can't write to this Python environment.
    """
    if not (directory / "sitecustomize.py").is_file():
        return "it has no sitecustomize.py (half-removed, or installed in an archive)"
    if os.pathsep in str(directory):
        return f"its name has a {os.pathsep!r} in it, which PYTHONPATH does not allow"
    return permissions.why_others_can_change_code(str(directory / "sitecustomize.py"))


def _command(program: list[str]) -> Optional[list[str]]:
    """Return the command line to execute; ``None`` if the program does not exist.

    Raises:
        UsageError: ``-m`` is not followed by a module.
    """
    first, *arguments = program
    if first == "-m":
        if not arguments:
            raise UsageError("run: -m needs the name of a module")
        return [_python(), *program]
    is_source = first.endswith((".py", ".pyw")) and os.path.isfile(first)
    is_name = not os.path.dirname(first)  # another user's directory must not decide what `run torchrun` starts
    if not is_source and (is_name or not _has_main(first)):
        found = shutil.which(first) or shutil.which(first, path=sysconfig.get_path("scripts"))
        if found:
            return [found, *arguments]
    if is_source or _has_main(first) or os.path.isfile(first):
        # Python reads a name that starts with "-" as an option.
        return [_python(), os.path.join(os.curdir, first) if first.startswith("-") else first, *arguments]
    return None


def _has_main(path: str) -> bool:
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "__main__.py"))
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def _python() -> str:
    if not sys.executable:
        raise UsageError("run: this Python cannot find its own executable (sys.executable is empty)")
    return sys.executable


def _foreign_python(executable: str) -> str:
    """Return the Python that runs a command if it belongs to another environment, else ""."""
    interpreter = executable
    try:
        with _files.open_regular(executable) as file:
            first = file.readline(512)
    except OSError:
        return ""
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        if words and os.path.basename(words[0]) == "env" and len(words) > 1:
            words = [shutil.which(words[-1]) or ""]
        interpreter = words[0] if words else ""
    if not os.path.basename(interpreter).startswith("python"):
        return ""
    ours = {os.path.realpath(os.path.dirname(path)) for path in (sys.executable, sysconfig.get_path("scripts"))}
    return "" if os.path.realpath(os.path.dirname(interpreter)) in ours else interpreter


def _replace_process(command: list[str], environment: dict[str, str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the stream is a closed pipe
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these signals, and so would the program
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        if sys.platform == "win32":  # after exec, the shell would not wait for the program
            return subprocess.run(command, env=environment).returncode
        _execute(command, environment)
    except OSError as error:
        _output.complain(f"lightning-patches: run: {command[0]}: {error.strerror}")
        return NOT_EXECUTABLE


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    os.execve(command[0], command, environment)
