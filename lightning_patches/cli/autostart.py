"""Enable the patches in every program of this Python environment that runs with LIGHTNING_PATCHES set.

  enable   write one line to this environment's site directory. Python runs it at each start. It reads
           LIGHTNING_PATCHES, and loads this package only if that is set
  disable  remove the line; --all also removes lines of other installations of the package
  status   show the file, its exact bytes and their sha256
  export   copy the package and wrapt to DIR, for PYTHONPATH, without a change to the environment

Uninstalling or upgrading the package removes the file, so run `enable` again after an upgrade. If the file stays
without the package, it does nothing. `enable` writes nothing else, and installing the package does not write the line.
After `pip install --user`, the line is in the site directory of that user.

In an image, a conda environment or a cluster module, three lines enable it for all users:

  pip install FILE.whl                  # or a checkout; beside the installed Lightning
  lightning-patches autostart enable    # refused in a system Python and in a read-only directory
  export LIGHTNING_PATCHES=1            # ENV in a Dockerfile, `conda env config vars set`, setenv in a module

Users opt out with LIGHTNING_PATCHES=off. `python -I` and `python -E` ignore LIGHTNING_PATCHES like all variables of
Python, and are not patched. For Ray: `runtime_env={"env_vars": {"LIGHTNING_PATCHES": "1"}}`, or write
`import lightning_patches` inside the train function.

If you can't write to the environment (a cluster module, a shared conda environment), install the package into a new
environment with the same version of Python, export it once, and add the two printed lines to the job script, below
`module load` and `conda activate`:

  lightning-patches autostart export ~/lightning-patches

Every Python of that version is patched in the job, in all ranks. Other versions are not patched. If the environment has
wrapt, its copy is used and not the exported one. The environment's `sitecustomize` still runs. Nothing is downloaded.
To use a newer lightning-patches, export it to another directory. For a single job in an environment that has
lightning-patches, `lightning-patches run -- srun python train.py` does the same without a copy.

exit status of `status`:
  0  enabled, and the file is what `enable` writes
  1  not enabled, or the file is something else
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import site as sites
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from lightning_patches import permissions
from lightning_patches.activation import startup
from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UsageError
from lightning_patches.known.installed import find_installed
from lightning_patches.system import python_command

HELP = "patch every program of this environment that runs with LIGHTNING_PATCHES set"
STEM = "lightning_patches_autostart"
PTH = (
    'import os, sys; os.environ.get("LIGHTNING_PATCHES") and not sys.flags.ignore_environment and '
    'any(f.find_spec("lightning_patches", None) for f in sys.meta_path) and __import__("lightning_patches")\n'
)
"""The line that Python runs at each start. Without LIGHTNING_PATCHES, it only reads one variable. It calls the finders
directly, because importing ``importlib.util`` takes longer than everything else in it."""
START = "_lightning_patches:start\n"
EXPORTED = "python{}.{}".format(*sys.version_info)
"""Directory of the exported packages. The exported ``sitecustomize`` acts only if the directory of its Python version
exists."""
_ROOT = Path(os.path.abspath(startup.__file__)).parents[2]
INSTEAD = (
    "Instead: use a virtual environment, or start the program with `lightning-patches run`, or put "
    "`import lightning_patches` at the top of the script, or use `lightning-patches autostart export DIR`."
)


@dataclass(frozen=True)
class Site:
    """A site directory, and the files that ``enable`` writes there.

    Args:
        directory: the directory in which Python looks for ``.pth`` files.
        version: the version of that Python.
        record: the file RECORD of this package, if pip or uv has installed it in ``directory``.
    """

    directory: Path
    version: tuple[int, int]
    record: Optional[Path] = None

    @property
    def files(self) -> dict[Path, bytes]:
        """The content of each file.

        Python 3.15 adds ``.start`` files (PEP 829), and 3.18 no longer runs lines of ``.pth`` files. Before 3.18, a
        ``.pth`` file is better: a ``.start`` file makes Python 3.15.2 import ``pkgutil`` and ``re`` at every start,
        even if LIGHTNING_PATCHES is unset, which takes more than half of the time of a bare start. And Python reports
        an error at every start if the package is missing.
        """
        files = {self.directory / f"{STEM}.pth": PTH.encode()}
        if self.version >= (3, 18):
            files[self.directory / f"{STEM}.start"] = START.encode()
        return files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = ("enable", "disable", "export", "status")
    parser.add_argument("action", choices=actions, metavar="{enable,disable,export,status}")
    parser.add_argument("directory", metavar="DIR", nargs="?", help="export: the target, a new or an empty directory")
    parser.add_argument("--all", action="store_true", help="disable: in every site directory of this Python")
    parser.add_argument("--json", action="store_true", help="status as JSON")


def run(args: argparse.Namespace) -> int:
    site = this_site()
    if args.all and args.action != "disable":
        raise UsageError(f"autostart: --all is for disable, not for {args.action}.")
    if (args.directory is not None) != (args.action == "export"):
        raise UsageError("autostart: only export takes a directory, and it needs one: `autostart export DIR`.")
    if args.action == "status":
        return _status(site, args.json)
    with _unwound_by_signals():
        if args.action == "export":
            return _export(args.directory)
        if args.action == "enable":
            return _enable(site)
        return _disable(*(all_sites() if args.all else [site]))


@contextlib.contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit(128 + number), so that the command removes unfinished files."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]  # not under nohup

    def end(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # let the clean-up finish
        raise SystemExit(128 + number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def this_site() -> Site:
    """The site directory of this Python environment, or that of the user if the package is installed there."""
    shared = Path(sysconfig.get_path("purelib"))
    user = _user_site()
    is_users = user is not None and _record(user) is not None and _record(shared) is None
    directory = user if user is not None and is_users else shared
    return Site(directory, sys.version_info[:2], _record(directory))


def all_sites() -> list[Site]:
    """Every site directory of this Python."""
    user = _user_site()
    names = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sites.getsitepackages(), *sys.path]
    names += [str(user)] if user else []
    found = {os.path.realpath(name): Path(name) for name in names if os.path.isdir(name)}
    return [Site(directory, sys.version_info[:2], _record(directory)) for directory in found.values()]


def _user_site() -> Optional[Path]:
    """The site directory of this user; ``None`` if this Python ignores it, as in a virtual environment."""
    return Path(sites.getusersitepackages()) if sites.ENABLE_USER_SITE and sys.prefix == sys.base_prefix else None


def is_enabled() -> bool:
    """True if programs of this environment read LIGHTNING_PATCHES when they start."""
    if _ROOT.name == EXPORTED and (_ROOT.parent / "sitecustomize.py").is_file():
        return True  # the exported sitecustomize has put this package on the path
    site = this_site()
    try:
        return all(path.is_file() and path.read_bytes() == content for path, content in site.files.items())
    except OSError:
        return False  # programs of this user can't read it either


def why_refused(site: Site) -> str:
    """The reason why ``enable`` must not write to a site directory; "" if it may."""
    prefix = Path(os.path.realpath(sys.prefix))
    if re.fullmatch(r"[a-z]+-v\d+", prefix.parent.name) and (prefix.parents[1] / "CACHEDIR.TAG").is_file():
        return f"install the package into the environment of the project: {prefix} is a temporary environment of uv"
    in_environment = sys.prefix != sys.base_prefix or os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
    if not in_environment and site.directory != _user_site():
        marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
        if os.path.isfile(marker):
            return f"{sys.prefix} is managed by the system's package manager ({marker})"
        if os.path.realpath(sys.prefix) == "/usr":
            return f"{sys.prefix} is the system's Python"
    if not os.path.isdir(site.directory):
        return f"this Python has no directory {site.directory}"
    if not os.access(site.directory, os.W_OK):
        return f"{site.directory} is read-only for this user"
    if str(site.directory) not in sys.path:
        return f"{site.directory} is not on the path of this Python"
    return permissions.why_others_can_change_code(startup.__file__)


def _enable(site: Site) -> int:
    refused = why_refused(site)
    if refused:
        raise UsageError(f"autostart: {refused}. {INSTEAD}")
    try:
        for path, content in site.files.items():
            _write(path, content)
            _output.write(f"wrote {path}")
        _set_record_entry(site, present=True)
    except OSError as error:
        raise UsageError(f"autostart: {error.filename}: {error.strerror}. {INSTEAD}") from error
    if not _works():
        _remove(site)
        raise UsageError(
            "autostart: a new Python of this environment cannot find lightning_patches at its start, so the line "
            f"was removed again. Install the package into this environment ({sys.prefix})."
        )
    _output.write(
        _output.paragraph("From now on, programs of this environment that run with LIGHTNING_PATCHES set are patched.")
    )
    if not find_installed():
        _output.write(
            _output.paragraph(
                f"There is no Lightning in this environment, {sys.prefix}. If yours is in another environment, use the "
                "`lightning-patches` of that one."
            )
        )
    if not os.environ.get(startup.VARIABLE):
        _output.write("LIGHTNING_PATCHES is not set: run `export LIGHTNING_PATCHES=1`.")
    return OK


def _export(name: str) -> int:
    directory = Path(os.path.realpath(name))
    existing = next(place for place in (directory, *directory.parents) if os.path.lexists(place))
    try:
        _refuse_unsafe(directory, existing)
        with _closed_umask(), contextlib.ExitStack() as undo:
            for place in (*reversed(directory.parents), directory):
                if not os.path.lexists(place):
                    undo.callback(_remove_empty, place)
                    place.mkdir()
            _refuse_unsafe(directory, directory)  # in /tmp, another user could have made it first
            _fill(directory, undo)
            undo.pop_all()
    except OSError as error:
        raise UsageError(f"autostart: {error.filename}: {error.strerror}") from error
    version = EXPORTED[len("python") :]
    _output.write(f"# For the job script: Lightning is patched in every Python {version} that it starts.")
    _output.write(f"export PYTHONPATH={_shell_word(str(directory))}${{PYTHONPATH:+:$PYTHONPATH}}")
    _output.write(f"export {startup.VARIABLE}=1")
    _output.write("# In the job, `python -m lightning_patches status` shows what is patched.")
    return OK


@contextlib.contextmanager
def _closed_umask() -> Iterator[None]:
    """Create files that other users cannot change."""
    before = os.umask(0o022)
    os.umask(before | 0o022)
    try:
        yield
    finally:
        os.umask(before)


def _refuse_unsafe(directory: Path, existing: Path) -> None:
    """Check a directory before anything is written to it.

    Args:
        directory: where to export to.
        existing: the same, or the nearest directory above it that exists.

    Raises:
        UsageError: PYTHONPATH can't name it, another user can change it, or it is not empty.
        OSError: it can't be read, or a file is in its place.
    """
    if os.pathsep in str(directory):
        refused = f"{directory} has a {os.pathsep!r} in its name, which PYTHONPATH does not allow"
    else:
        refused = permissions.why_others_can_change(str(existing), sticky_from=str(directory))
    if not refused and existing == directory:
        names = sorted(os.listdir(directory))
        refused = f"{directory} is not empty, it contains {names[0]!r}" if names else ""
    if refused:
        raise UsageError(f"autostart: name another directory: {refused}.")


def _fill(directory: Path, undo: contextlib.ExitStack) -> None:
    """Copy the package and wrapt into an empty directory.

    Args:
        directory: the directory.
        undo: this function adds a call that removes the copies; the caller runs it if the export fails.
    """
    import wrapt

    root = directory / EXPORTED
    undo.callback(shutil.rmtree, root, ignore_errors=True)  # first, since a signal may come right after mkdir
    try:
        root.mkdir()
    except FileExistsError:
        undo.pop_all()  # another export has created it, and needs these directories
        raise
    for package in (_ROOT / "lightning_patches", Path(wrapt.__file__).parent):
        _copy(package, root / package.name)
    compileall.compile_dir(root, quiet=2)  # otherwise all ranks would compile at once on a shared file system
    launcher = (_ROOT / "lightning_patches" / "activation" / "launcher" / "sitecustomize.py").read_bytes()
    _write(directory / "sitecustomize.py", launcher)  # last, since Python uses the other files as soon as it exists


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


def _shell_word(path: str) -> str:
    """Quote a path for every shell. Bytes that the terminal cannot show become calls of ``printf``."""
    name = os.fsencode(path)
    if path.isprintable() and path.encode(sys.stdout.encoding or "ascii", "replace") == name:
        return shlex.quote(path)
    octal = (chr(byte) if re.match(rb"[\w./-]", bytes([byte])) else f"\\{byte:03o}" for byte in name)
    return f"\"$(printf '{''.join(octal)}')\""


def _copy(package: Path, target: Path) -> None:
    """Copy a package without compiled files, and without the owners and modes of its files."""
    for path in package.rglob("*"):
        place = target / path.relative_to(package)
        if path.is_file() and "__pycache__" not in place.parts:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _disable(*several: Site) -> int:
    removed, errors = [], []
    for site in several:
        try:
            removed += _remove(site)
        except OSError as error:
            errors.append(f"{error.filename}: {error.strerror}")
    for path in removed:
        _output.write(f"removed {path}")
    if errors:
        raise UsageError(f"autostart: {'; '.join(errors)}")
    if not removed:
        _output.write("Autostart was not enabled.")
    return OK


def _status(site: Site, as_json: bool) -> int:
    found = []
    for path in _ours(site):
        content = path.read_bytes()
        found.append(
            {
                "path": str(path),
                "content": content.decode(errors="backslashreplace"),
                "sha256": hashlib.sha256(content).hexdigest(),
                "as_written_by_enable": content == site.files.get(path),
            }
        )
    intact = {file["path"] for file in found if file["as_written_by_enable"]} == {str(path) for path in site.files}
    enabled = intact and len(found) == len(site.files)
    if as_json:
        _output.write_json({"enabled": enabled, "site": str(site.directory), "files": found})
        return OK if enabled else NOT_APPLIED
    for file in found:
        _output.write(f"{file['path']}\nsha256 {file['sha256']}\n{file['content']}".rstrip("\n"))
        if not file["as_written_by_enable"]:
            _output.write("This is NOT the content that `lightning-patches autostart enable` writes.")
    if enabled:
        _output.write("enabled")
    else:
        _output.write("not as `enable` writes it: enable it again" if found else f"not enabled in {site.directory}")
    return OK if enabled else NOT_APPLIED


def _ours(site: Site) -> list[Path]:
    paths = (site.directory / f"{STEM}{suffix}" for suffix in (".pth", ".start"))
    return [path for path in paths if path.is_file()]


def _remove(site: Site) -> list[Path]:
    removed = _ours(site)
    for path in removed:
        path.unlink()
    _set_record_entry(site, present=False)
    return removed


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, because another Python may read it at any time."""
    handle, temporary = tempfile.mkstemp(prefix=f".{STEM}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _works() -> bool:
    """Return True if a new Python of this environment loads the package while it starts."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", startup.INSPECT_ONLY)}
    environment[startup.VARIABLE] = "1"
    code = "import sys; sys.exit('lightning_patches.activation.startup' not in sys.modules)"
    return subprocess.run(python_command("-c", code), env=environment).returncode == 0


def _record(directory: Path) -> Optional[Path]:
    found = sorted(directory.glob("lightning_patches-*.dist-info/RECORD"))
    return found[0] if len(found) == 1 else None


def _set_record_entry(site: Site, present: bool) -> None:
    """Add our files to RECORD, or remove them from it, so that an uninstallation removes them.

    Otherwise they would stay, and act again after the next installation.
    """
    if site.record is None:
        return
    names = [path.name for path in site.files]
    content = site.record.read_bytes()
    lines = content.splitlines(keepends=True)
    ours = {f"{STEM}.pth".encode(), f"{STEM}.start".encode()}
    kept = [line for line in lines if line.partition(b",")[0] not in ours]
    end = b"\r\n" if content.endswith(b"\r\n") else b"\n"
    expected = b"".join([*kept, *(f"{name},,".encode() + end for name in names)] if present else kept)
    if expected != content:
        _write(site.record, expected)
