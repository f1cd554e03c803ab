"""``lightning-patches autostart``: the files that it writes, its refusals, and its complete removal."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.cli import autostart
from tests.activation.conftest import HEAVY, OUTER, PROGRAMS, Environment, install_metadata
from tests.support import pythons
from tests.support.variants import ROOT

PLAIN = str(PROGRAMS / "plain.py")


def command(environment: Environment, *arguments: str, **more: str) -> tuple[int, str]:
    return environment.run(environment.command("lightning-patches"), "autostart", *arguments, **more)


def line_of(environment: Environment) -> Path:
    return environment.site / "lightning_patches_autostart.pth"


def look(environment: Environment, *options: str, **more: str) -> dict[str, Any]:
    status, output = environment.run("python", *options, PLAIN, **more)
    assert status == 0, output
    found = json.loads(output)
    assert isinstance(found, dict)
    return found


def contents(environment: Environment) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in environment.site.iterdir() if path.is_file()}


def test_enable_status_disable(fresh_environment: Environment) -> None:
    before = contents(fresh_environment)
    status, output = command(fresh_environment, "status")
    assert status == 1
    assert f"not enabled in {fresh_environment.site}" in output

    status, output = command(fresh_environment, "enable")
    assert status == 0, output
    assert str(line_of(fresh_environment)) in output
    assert "export LIGHTNING_PATCHES=1" in output
    assert set(contents(fresh_environment)) - set(before) == {line_of(fresh_environment).name}
    assert line_of(fresh_environment).stat().st_mode & 0o777 == 0o644

    status, output = command(fresh_environment, "status")
    written = line_of(fresh_environment).read_bytes()
    assert status == 0, output
    assert str(line_of(fresh_environment)) in output
    assert written.decode().strip() in output
    assert hashlib.sha256(written).hexdigest() in output

    assert command(fresh_environment, "enable", LIGHTNING_PATCHES="1")[0] == 0  # a second `enable` changes nothing
    assert line_of(fresh_environment).read_bytes() == written

    status, output = command(fresh_environment, "disable")
    assert status == 0, output
    assert contents(fresh_environment) == before
    assert command(fresh_environment, "disable") == (0, "Autostart was not enabled.\n")


@pytest.mark.parametrize("lightning", [False, True])
def test_enable_reports_a_missing_lightning(fresh_environment: Environment, lightning: bool) -> None:
    """For example in the environment that `uv tool` or pipx creates for the command alone."""
    program = fresh_environment.command("lightning-patches")
    status, output = fresh_environment.run(program, "autostart", "enable", lightning=lightning)
    assert status == 0, output
    printed = f"There is no Lightning in this environment, {fresh_environment.directory}" in " ".join(output.split())
    assert printed is not lightning, output


def test_status_reports_an_unknown_line(fresh_environment: Environment) -> None:
    line_of(fresh_environment).write_text("import os; os.environ.setdefault('PWNED', '1')\n")
    status, output = command(fresh_environment, "status")
    assert status == 1
    assert "NOT the content that `lightning-patches autostart enable` writes" in output
    assert "PWNED" in output
    command(fresh_environment, "enable")
    assert line_of(fresh_environment).read_text() == autostart.PTH


@pytest.mark.parametrize(
    ("toggle", "armed"),
    [(None, False), ("", False), ("1", True), ("crash", True), ("off", False), ("0", False), ("None", False)],
)
def test_autostart_patches_only_if_the_variable_is_set(autostarted: Environment, toggle: Any, armed: bool) -> None:
    found = look(autostarted, **({} if toggle is None else {"LIGHTNING_PATCHES": toggle}))
    assert found["armed"] is armed
    if not toggle:
        assert not found["loaded"]


def test_explicit_import_patches_when_the_autostart_variable_is_unset(autostarted: Environment, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import lightning_patches\nfrom lightning_patches.activation import startup\nprint(startup.is_settled())\n"
    )
    assert autostarted.run("python", str(program)) == (0, "True\n")


def test_autostart_line_prints_nothing_when_the_package_was_removed(fresh_environment: Environment) -> None:
    command(fresh_environment, "enable")
    (fresh_environment.site / "0_checkout.pth").unlink()
    assert line_of(fresh_environment).exists()
    for toggle in ("", "1"):
        assert fresh_environment.run("python", "-c", "print('runs')", LIGHTNING_PATCHES=toggle) == (0, "runs\n")


def test_enable_removes_the_line_if_it_has_no_effect(fresh_environment: Environment) -> None:
    """The package is on PYTHONPATH only, so programs without that variable would silently stay unpatched."""
    (fresh_environment.site / "0_checkout.pth").unlink()
    before = contents(fresh_environment)
    status, output = command(fresh_environment, "enable", PYTHONPATH=str(ROOT))
    assert status == 2
    assert "cannot find lightning_patches at its start" in output
    assert contents(fresh_environment) == before


class TestRefusals:
    def test_managed_python_is_refused_and_conda_is_accepted(self, tmp_path, monkeypatch):
        site = autostart.Site(tmp_path, sys.version_info[:2])
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
        monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
        assert autostart.why_refused(site) == ""  # a Python built from source, or the official container image
        (tmp_path / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
        assert "managed by the system's package manager" in autostart.why_refused(site)
        (tmp_path / "conda-meta").mkdir()
        assert autostart.why_refused(site) == ""
        (tmp_path / "conda-meta").rmdir()
        (tmp_path / "EXTERNALLY-MANAGED").unlink()
        monkeypatch.setattr(sys, "prefix", "/usr")
        monkeypatch.setattr(sys, "base_prefix", "/usr")
        assert "is the system's Python" in autostart.why_refused(site)

    @pytest.mark.parametrize("place", ["builds-v0/.tmpsfD5Qp", "archive-v0/47dFAaP2VBOWCO4E"])
    def test_temporary_environment_of_uv_is_refused(self, tmp_path, monkeypatch, place):
        """Environments of `uv run --with`, and of `uvx`. uv marks its cache and each environment with a file."""
        prefix = tmp_path / place
        prefix.mkdir(parents=True)
        (prefix / "CACHEDIR.TAG").write_text("")
        monkeypatch.setattr(sys, "prefix", str(prefix))
        monkeypatch.setattr(sys, "path", [*sys.path, str(prefix)])
        site = autostart.Site(prefix, (3, 11))
        assert autostart.why_refused(site) == ""
        (tmp_path / "CACHEDIR.TAG").write_text("")
        assert autostart.why_refused(site).startswith("install the package into the environment of the project")

    def test_directory_that_python_ignores_is_refused(self, tmp_path: Path) -> None:
        assert "is not on the path of this Python" in autostart.why_refused(autostart.Site(tmp_path, (3, 11)))
        assert "has no directory" in autostart.why_refused(autostart.Site(tmp_path / "none", (3, 11)))

    @pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="there is no system Python")
    def test_enable_refuses_the_system_python_of_this_machine(self, tmp_path: Path) -> None:
        code = "import sysconfig, sys; print(sysconfig.get_path('stdlib'), sys.prefix)"
        shown = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True).stdout
        stdlib, prefix = shown.split()
        if prefix != "/usr":
            pytest.skip(f"/usr/bin/python3 is of {prefix}")
        outer = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}  # for the package's requirements
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *outer])}
        done = subprocess.run(
            ["/usr/bin/python3", "-m", "lightning_patches", "autostart", "enable"], env=variables, cwd=tmp_path,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert "system" in done.stderr
        assert "use a virtual environment, or start the program with `lightning-patches run`" in done.stderr

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_read_only_environment_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o755)
            code = (
                "import os, pathlib, sys\n"
                "from lightning_patches.cli import autostart\n"
                f"site = autostart.Site(pathlib.Path({name!r}), (3, 11))\n"
                "sys.path.append(str(site.directory))\n"
                "print(repr(autostart.why_refused(site)))\n"
                "os.setuid(65534)\n"
                "print(autostart.why_refused(site))\n"
            )
            variables = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
        as_root, as_user = done.stdout.splitlines()
        assert as_root == "''"
        assert "is read-only for this user" in as_user


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    (tmp_path / "file.pth").write_text("old\n")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        autostart._write(tmp_path / "file.pth", b"new\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file.pth"]
    assert (tmp_path / "file.pth").read_text() == "old\n"


class TestStartFile:
    """PEP 829: a ``.start`` file slows Python down more than ``.pth``, and is reported if the package is gone."""

    PTH, START = "lightning_patches_autostart.pth", "lightning_patches_autostart.start"

    @pytest.mark.parametrize(("version", "expected"), [((3, 9), {PTH}), ((3, 17), {PTH}), ((3, 18), {PTH, START})])
    def test_enable_writes_the_expected_files(self, tmp_path, version, expected):
        assert {path.name for path in autostart.Site(tmp_path, version).files} == expected

    def test_named_function_exists_and_has_no_parameters(self, environment: Environment) -> None:
        module, _, function = autostart.START.strip().partition(":")
        code = f"import {module}, sys; {module}.{function}(); print('lightning_patches' in sys.modules)"
        for toggle, expected in (("", "False\n"), ("off", "False\n"), ("1", "True\n")):
            assert environment.run("python", "-c", code, LIGHTNING_PATCHES=toggle) == (0, expected)


def test_pip_uninstall_removes_the_line(fresh_environment: Environment) -> None:
    """A line that is left over would activate the next installation."""
    metadata = install_metadata(fresh_environment)
    command(fresh_environment, "enable")
    assert "lightning_patches_autostart.pth,," in (metadata / "RECORD").read_text().splitlines()
    code = (
        "import importlib.metadata as m; d = m.distribution('lightning-patches'); "
        "[d.locate_file(f).unlink() for f in d.files]"
    )
    status, output = fresh_environment.run("python", "-c", code)
    assert status == 0, output
    assert not line_of(fresh_environment).exists()
    assert look(fresh_environment, LIGHTNING_PATCHES="1")["loaded"] is False


class TestUserInstallation:
    """``pip install --user``: the package is in a directory of one user, and all users share the Python."""

    PTH = "lightning_patches_autostart.pth"

    def run(self, base: Path, *arguments: str) -> tuple[int, str]:
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LIGHTNING"))}
        python = [getattr(sys, "_base_executable", sys.executable), *arguments]
        done = subprocess.run(
            python, env={**variables, "PYTHONUSERBASE": str(base)}, cwd=base, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    @pytest.fixture
    def user_site(self, tmp_path: Path) -> Path:
        site = Path(self.run(tmp_path, "-m", "site", "--user-site")[1].strip())
        metadata = site / "lightning_patches-0.0.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning-patches\nVersion: 0.0.0\n")
        (metadata / "RECORD").write_text("lightning_patches-0.0.0.dist-info/RECORD,,\n")
        (site / "0_checkout.pth").write_text("".join(f"{path}\n" for path in (ROOT, sysconfig.get_path("purelib"))))
        return site

    def test_user_install_enables_only_that_user(self, tmp_path: Path, user_site: Path) -> None:
        code = "from lightning_patches.cli import autostart as a; print(a.this_site().directory)"
        assert self.run(tmp_path, "-c", code) == (0, f"{user_site}\n")  # before anything is written
        status, output = self.run(tmp_path, "-m", "lightning_patches", "autostart", "enable")
        assert status == 0, output
        assert (user_site / self.PTH).read_text() == autostart.PTH
        record = user_site / "lightning_patches-0.0.0.dist-info" / "RECORD"
        assert f"{self.PTH},," in record.read_text().splitlines()
        assert self.run(tmp_path, "-m", "lightning_patches", "autostart", "disable")[0] == 0
        assert not (user_site / self.PTH).exists() and self.PTH not in record.read_text()

    def test_leftover_line_of_another_installation_is_found(self, tmp_path: Path, user_site: Path) -> None:
        left = tmp_path / "elsewhere"
        left.mkdir()
        (left / self.PTH).write_text(autostart.PTH)
        code = (
            f"import sys; sys.path.append({str(left)!r}); from lightning_patches import cli; sys.exit(cli.main("
            "['autostart', 'disable', *sys.argv[1:]]))"
        )
        assert self.run(tmp_path, "-c", code) == (0, "Autostart was not enabled.\n")
        assert self.run(tmp_path, "-c", code, "--all") == (0, f"removed {left / self.PTH}\n")
        assert not (left / self.PTH).exists()
        assert self.run(tmp_path, "-m", "lightning_patches", "autostart", "enable", "--all")[0] == 2


@pytest.fixture(scope="module")
def exported(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory, and the lines for the job script."""
    directory = tmp_path_factory.mktemp("cluster") / "a b" / "patches"
    status, output = command(environment, "export", str(directory))
    assert status == 0, output
    return directory, output


class TestExport:
    """For a read-only environment: everything comes from a directory on PYTHONPATH."""

    LOOK = (
        "import json, sys, packaging\n"
        "from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection\n"
        "print(json.dumps({'live': getattr(_ResultCollection.update_metrics, '__lightning_patches__', []),\n"
        "  **{name: getattr(sys.modules.get(name), '__file__', None)\n"
        "     for name in ('lightning_patches', 'wrapt', 'packaging', 'sitecustomize')}}))\n"
    )

    @pytest.fixture
    def bare(self, fresh_environment: Environment) -> Environment:
        for path in fresh_environment.site.glob("*.pth"):
            path.unlink()
        return fresh_environment

    @pytest.fixture
    def cluster(self, bare: Environment) -> Environment:
        """Return an environment with torch and Lightning's requirements, but without this package and wrapt."""
        ours = ("wrapt", "lightning_patches", "_lightning_patches", "__pycache__")
        packages = {path.name: path for directory in reversed(OUTER) for path in Path(directory).iterdir()}
        for name, path in packages.items():
            if not name.startswith(ours) and path.suffix != ".pth":
                (bare.site / name).symlink_to(path)
        return bare

    def job(self, environment: Environment, lines: str, *program: str, **more: Any) -> tuple[int, str]:
        return environment.run("sh", "-c", f'{lines}\nexec "$@"', "sh", *program, **more)

    @pytest.mark.slow
    def test_job_is_patched_and_the_environment_keeps_its_own_modules(self, cluster, exported):
        directory, lines = exported
        root = directory / "python{}.{}".format(*sys.version_info)
        look = (cluster.python, "-c", self.LOOK)
        before = {path.name for path in cluster.site.iterdir()}
        found = json.loads(self.job(cluster, lines, *look, lightning=True)[1].splitlines()[-1])
        assert found["live"] == ["logged-metrics-device"]
        assert found["lightning_patches"] == str(root / "lightning_patches" / "__init__.py")
        assert found["wrapt"] == str(root / "wrapt" / "__init__.py")
        assert found["packaging"].startswith(str(cluster.site))
        assert {path.name for path in cluster.site.iterdir()} - {"__pycache__"} == before

        asleep = json.loads(self.job(cluster, f"{lines}unset LIGHTNING_PATCHES", *look, lightning=True)[1])
        assert (asleep["live"], asleep["lightning_patches"], asleep["wrapt"]) == ([], None, None)

    def test_packaging_of_the_environment_takes_precedence(self, bare: Environment, exported: tuple[Path, str]) -> None:
        """The same holds for wrapt. Only the launcher precedes the environment on the path."""
        directory, lines = exported
        found = {path.name for path in directory.iterdir()} - {"__pycache__"}
        assert found == {"sitecustomize.py", "python{}.{}".format(*sys.version_info)}
        for name in ("packaging", "wrapt"):
            (bare.site / f"{name}.py").write_text("old = True\n")
        code = "import packaging, wrapt, lightning_patches as us; print(packaging.old, wrapt.old, us.__file__)"
        status, output = self.job(bare, lines, bare.python, "-c", code)
        assert (status, output.startswith(f"True True {directory}")) == (0, True), output

    def test_nothing_is_imported_before_lightning(self, bare: Environment, exported: tuple[Path, str]) -> None:
        found = json.loads(self.job(bare, exported[1], bare.python, PLAIN)[1])
        assert (found["armed"], HEAVY & set(found["modules"])) == (True, set())
        asleep = json.loads(self.job(bare, f"{exported[1]}unset LIGHTNING_PATCHES", bare.python, PLAIN)[1])
        assert (asleep["armed"], asleep["loaded"]) == (False, False)
        assert [entry for entry in asleep["path"] if entry.startswith(str(exported[0]))] == [str(exported[0])]

    @pytest.mark.parametrize("minor", ["2.7", *pythons.MINORS])
    def test_other_python_version_is_not_patched(self, fresh_environment, exported, minor):
        python = pythons.find(minor)
        if python is None or minor.rstrip("t") == "{}.{}".format(*sys.version_info):
            pytest.skip(f"no other Python {minor} on this machine")
        code = "import sys; print(['lightning_patches' in sys.modules] + [p for p in sys.path if 'patches' in p])"
        assert self.job(fresh_environment, exported[1], python, "-c", code) == (0, f"[False, {str(exported[0])!r}]\n")

    def test_wrapt_works_without_its_compiled_part(self, bare, exported, tmp_path):
        """Login nodes and compute nodes may differ in processor and C library."""
        copy = tmp_path / "copy"
        shutil.copytree(exported[0], copy)
        compiled = list(copy.rglob("_wrappers*.so"))
        for path in compiled:
            path.write_bytes(b"of another machine")
        if not compiled:
            pytest.skip("this wrapt has no compiled part")
        code = (
            "import wrapt; print(wrapt.FunctionWrapper(abs, lambda f, instance, a, k: f(*a) + 1)(-1), wrapt.__file__)"
        )
        more = {"PYTHONPATH": str(copy), "LIGHTNING_PATCHES": "1"}
        status, output = bare.run("python", "-c", code, **more)
        assert (status, output.startswith(f"2 {copy}")) == (0, True), output

    @pytest.mark.parametrize("place", ["PYTHONPATH", "site"])
    def test_sitecustomize_of_the_environment_still_runs(self, fresh_environment, exported, tmp_path, place):
        other = tmp_path if place == "PYTHONPATH" else fresh_environment.site
        (other / "sitecustomize.py").write_text("import sys\nsys.neighbours = 1\n")
        more = {"PYTHONPATH": str(tmp_path)} if place == "PYTHONPATH" else {}
        alone = look(fresh_environment, **more)
        found = json.loads(self.job(fresh_environment, exported[1], fresh_environment.python, PLAIN, **more)[1])
        assert (alone["armed"], found["armed"]) == (False, True)
        assert (found["neighbours"], found["sitecustomize"]) == (alone["neighbours"], alone["sitecustomize"])

    def test_directory_that_others_can_write_is_refused(self, environment: Environment, tmp_path: Path) -> None:
        for top, place in ((tmp_path / "open", tmp_path / "open"), (tmp_path / "above", tmp_path / "above" / "below")):
            top.mkdir()
            top.chmod(0o777)
            status, output = command(environment, "export", str(place))
            assert status == 2
            assert f"others can write to '{top}': `chmod o-w {top}` ends that" in output
            assert list(top.iterdir()) == []

    def test_failed_export_removes_what_it_wrote(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(source: str, target: Path) -> None:
            raise OSError(28, "No space left on device", str(target))

        (tmp_path / "mine").mkdir()
        monkeypatch.setattr(os, "replace", fail)
        for place in (tmp_path / "mine", tmp_path / "new" / "below"):
            with pytest.raises(autostart.UsageError, match="No space left"):
                autostart._export(str(place))
        assert [path.name for path in tmp_path.rglob("*")] == ["mine"]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_export_removes_what_it_wrote_when_a_signal_ends_it(self, environment, tmp_path, number):
        (tmp_path / "mine").mkdir()
        code = "import os, time; os.replace = lambda *names: time.sleep(100); from lightning_patches.cli import main"
        call = f"raise SystemExit(main(['autostart', 'export', {str(tmp_path / 'mine')!r}]))"
        arguments = [environment.python, "-c", f"{code}\n{call}"]
        process = subprocess.Popen(arguments, env=environment.variables(lightning=False), stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 100
            while not any((tmp_path / "mine").iterdir()) and time.monotonic() < deadline:
                time.sleep(0.001)
            process.send_signal(number)
            assert process.communicate(timeout=100)[1] == b""
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 128 + number
        assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
        assert command(environment, "export", str(tmp_path / "mine"))[0] == 0

    def test_exported_files_are_not_writable_by_others(self, environment: Environment, tmp_path: Path) -> None:
        line = 'umask 0; exec "$0" autostart export "$1"'
        status, output = environment.run(
            "sh", "-c", line, environment.command("lightning-patches"), str(tmp_path / "new")
        )
        assert status == 0, output
        written = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
        assert len(written) > 100
        assert [path for path in written if path.stat().st_mode & 0o022] == []

    def test_existing_files_are_not_overwritten(self, environment: Environment, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("")
        status, output = command(environment, "export", str(tmp_path))
        assert status == 2
        assert f"name another directory: {tmp_path} is not empty, it contains 'mine'" in output
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
