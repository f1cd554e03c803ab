"""The command line ``lightning-patches``, also ``python -m lightning_patches``.

Each module of this package whose name has no leading underscore is a command. ``list_`` is the command ``list``. A
module is imported only when its command is used, or when the help lists all commands. It defines:

``HELP``
    one line for the list of commands; the module's docstring is the text of ``lightning-patches COMMAND --help``.
``PROGRAM_METAVAR``
    for a command that also takes a program to run: the list ``args.program`` has the arguments after ``--``.
``add_arguments(parser)``
    adds its options to an :class:`argparse.ArgumentParser`.
``run(args)``
    runs the command, writes through :mod:`lightning_patches.cli._output` and returns the exit status. Raises
    :class:`~lightning_patches.cli._exit_status.UsageError` for wrong usage.

No command imports torch or Lightning into this process.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn, Optional

import lightning_patches
from lightning_patches import activation
from lightning_patches.activation import startup
from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import OK, USAGE, UsageError
from lightning_patches.errors import LightningPatchesError

PROGRAM = "lightning-patches"
TRACEBACK = "LIGHTNING_PATCHES_TRACEBACK"
"""If set, internal errors are shown with their traceback."""
_EPILOG = """\
exit status:
  0  no problem was found
  1  a problem was found; the help of each command explains it
  2  the command line or LIGHTNING_PATCHES names something that does not exist; a file cannot be read; output cannot be
     written; or lightning-patches itself has a bug
  3  `audit` does not know a release, or did not read all files"""
_COMPLETION = """

completion, with `pip install argcomplete` beside this package; in bash and zsh, and in fish:
  eval "$(register-python-argcomplete lightning-patches)"
  register-python-argcomplete --shell fish lightning-patches | source"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print a usage error, wrapped to the terminal, and exit."""
        self.print_usage(sys.stderr)
        message = re.sub(r"\S{200,}", lambda word: _output.cut(word[0]), message)
        _output.complain(f"{self.prog}: error: {message}")
        self.exit(USAGE)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and usage through :func:`_output.write`, which escapes and flushes."""
        if message and file is sys.stdout:
            _output.write(message.rstrip("\n"))
        else:
            super()._print_message(message, file)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help texts keep their paragraphs, lists and commands, and fit the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return _output.fitted(text, min(width, _output.MAX_TEXT_WIDTH))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _output.wrapped(text, width).splitlines()


def commands() -> tuple[str, ...]:
    """Names of all commands, in alphabetical order. Imports none of them."""
    modules = (info.name for info in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.rstrip("_") for name in modules if not name.startswith("_")))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run a command.

    Args:
        argv: the arguments without the program's name; those of this process if ``None``.

    Returns:
        The exit status, see ``lightning-patches --help``.
    """
    _output.prepare()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        if status and _is_working_directory_gone():
            _output.complain(f"{PROGRAM}: the working directory no longer exists. Change to another directory.")
    finally:
        finished = _finish()
    return status if finished else USAGE


def _is_working_directory_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _finish() -> bool:
    try:
        _output.finish()
    except _output.WriteError as error:
        _output.complain(f"{PROGRAM}: {error}")
        return False
    return True


def _run(arguments: list[str]) -> int:
    try:
        return _run_command(arguments)
    except SystemExit as ended:  # argparse: --help, --version, or a wrong option
        return ended.code if isinstance(ended.code, int) else USAGE
    except LightningPatchesError as error:
        _output.complain(f"{PROGRAM}: {error}")
        if isinstance(error, UsageError):
            _output.complain(f"See `{PROGRAM} {arguments[0]} --help`.")
        return USAGE
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("wrapt", "packaging"):
            raise
        _output.complain(f"{PROGRAM}: {error}; {startup.remedy(error)}.")
        return USAGE
    except (BrokenPipeError, KeyboardInterrupt) as ended:  # the pipe: its reader has closed it
        return OK if isinstance(ended, BrokenPipeError) else 130
    except Exception as error:
        if isinstance(error, FileNotFoundError) and _is_working_directory_gone():
            return USAGE  # `main` prints the cause
        for line in traceback.format_exc().splitlines() if os.environ.get(TRACEBACK) else ():
            _output.complain(line)
        _output.complain(
            f"{PROGRAM}: {type(error).__name__}: {_output.shown(str(error)[:2000])}. This is a bug in {PROGRAM} "
            f"{lightning_patches.__version__}. Please report this line and the command in an issue of its repository. "
            f"With {TRACEBACK}=1 it prints a traceback."
        )
        return USAGE


def _run_command(arguments: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    parser = _parser(arguments)
    if not arguments:
        parser.print_help(sys.stderr)
        return USAGE
    if not arguments[0].startswith("-") and arguments[0] not in commands():
        parser.error(_unknown(arguments[0]))
    arguments, program = _split(arguments)
    args = parser.parse_args(arguments)
    args.program = program
    activation.set_interrupt(raises=True)
    try:
        status: int = args.run(args)
    finally:
        activation.set_interrupt(raises=False)
    return status


def _complete() -> None:
    """Print completions for the shell if argcomplete is installed."""
    try:
        argcomplete = importlib.import_module("argcomplete")
    except ModuleNotFoundError:
        return
    argcomplete.autocomplete(_parser([], completing=True))


def _parser(arguments: list[str], completing: bool = False) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Fixes for known bugs of PyTorch Lightning, and their state in this environment.",
        epilog=_EPILOG + _COMPLETION,
        formatter_class=_Help,
    )
    version = f"{PROGRAM} {lightning_patches.__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    known = commands()
    first = arguments[0] if arguments and not completing else ""
    for name in (first,) if first in known else known:
        module = _load(name)
        subparser = subparsers.add_parser(name, help=module.HELP, description=module.__doc__, formatter_class=_Help)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split off the program after ``--`` if the command takes one, since argparse would parse its arguments."""
    if "--" not in arguments or not hasattr(_load(arguments[0]), "PROGRAM_METAVAR"):
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _load(name: str) -> ModuleType:
    modules = {info.name.rstrip("_"): info.name for info in pkgutil.iter_modules(__path__)}
    return importlib.import_module(f"{__name__}.{modules[name]}")


def _unknown(name: str) -> str:
    known, name = commands(), _output.cut(name)
    close = difflib.get_close_matches(name, known, n=2)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"The commands are {', '.join(known)}."
    return f"there is no command {name!r}. {hint}"
