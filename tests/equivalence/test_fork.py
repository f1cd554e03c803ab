"""The fork is a wheel like any other: installable, consistent, reproducible, and recognized by the shim."""

import base64
import csv
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lightning_patches import cli
from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from lightning_patches.fork import diffs as _diffs
from lightning_patches.fork import wheel as _fork
from tests.support import forks
from tests.support.run import ROOT, execute
from tests.support.variants import Variant, environment_of
from tests.unit.fakes import make_device, make_gigabyte

import _releases  # isort: skip

BUILD = [sys.executable, "-m", "lightning_patches", "fork"]


def test_record_and_metadata_describe_the_wheel(tmp_path):
    for distribution in _releases.DISTRIBUTIONS:
        fork = _fork.make(_releases.wheel(distribution, "2.2.5"))
        version = f"2.2.5+patches.{_diffs.NUMBER}.all"
        path = _fork.write_wheel(fork, tmp_path)
        stem = distribution.replace("-", "_")
        assert path.name == f"{stem}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(_releases.wheel(distribution, "2.2.5")) as official:
            info = f"{stem}-{version}.dist-info"
            assert wheel.namelist()[-1] == f"{info}/RECORD"
            rows = list(csv.reader(wheel.read(f"{info}/RECORD").decode().splitlines()))
            assert [row[0] for row in rows] == wheel.namelist()
            for name, digest, size in rows[:-1]:
                content = wheel.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={expected}", str(len(content))), name
            assert rows[-1] == [f"{info}/RECORD", "", ""]

            metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
            before = Parser().parsestr(official.read(f"{stem}-2.2.5.dist-info/METADATA").decode())
            assert metadata["Version"] == version
            assert metadata.get_all("Requires-Dist") == before.get_all("Requires-Dist")
            assert metadata.get_payload() == before.get_payload()

            facts = json.loads(wheel.read(f"{info}/{_fork.PROVENANCE}"))
            assert facts["made from"]["sha256"] == _releases.find(distribution, "2.2.5").sha256
            assert [entry["file"] for entry in facts["diffs"]] == [diff.path.name for diff in fork.diffs]

            renamed = {name.replace("-2.2.5.dist-info", f"-{version}.dist-info") for name in official.namelist()}
            assert set(wheel.namelist()) - renamed == {f"{info}/{_fork.PROVENANCE}"} | added_by(fork)
            for name in official.namelist():
                if ".dist-info/" in name or name.endswith("/version.info") and name.count("/") == 1:
                    continue
                changed = wheel.read(name) != official.read(name)
                marked = b"# lightning-patches: " in wheel.read(name)
                assert changed == marked, f"{name}: a changed file says so, and no other does"
            for namespace in ("lightning",) if stem == "lightning" else ("pytorch_lightning", "lightning_fabric"):
                assert wheel.read(f"{namespace}/version.info").decode().strip() == version


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
def test_requirements_in_a_fork_of_1_8_are_valid(distribution: str) -> None:
    """pip 24.1 and later refuse those of the official wheel."""
    official = _releases.reader(distribution, "1.8.0")(f"{distribution.replace('-', '_')}-1.8.0.dist-info/METADATA")
    fork = _fork.make(_releases.wheel(distribution, "1.8.0"))
    before, after = (
        Parser().parsestr(text).get_all("Requires-Dist", [])
        for text in (official or "", fork.changed[f"{fork.renamed[1]}/METADATA"].decode())
    )
    assert "torch (>=1.9.*)" in before
    assert after == [line.replace("1.9.*", "1.9").replace("0.10.*", "0.10") for line in before]
    assert all(map(Requirement, after))


def test_fork_of_1_8_has_its_version_where_the_package_reads_it(tmp_path):
    path = _fork.write_wheel(_fork.make(_releases.wheel("pytorch-lightning", "1.8.6")), tmp_path)
    with zipfile.ZipFile(path) as wheel:
        for package in ("pytorch_lightning", "lightning_lite"):
            version = wheel.read(f"{package}/__version__.py").decode()
            assert version == f'version = "1.8.6+patches.{_diffs.NUMBER}.all"\n'


def added_by(fork):
    namespace = _releases.NAMESPACES[fork.distribution]
    paths = {_diffs.path_in(namespace, path) for diff in fork.diffs for path, _ in diff.changes}
    with zipfile.ZipFile(_releases.wheel(fork.distribution, fork.base)) as official:
        return paths - set(official.namelist())


def test_two_builds_of_a_fork_have_the_same_bytes(tmp_path):
    written = []
    for name, zone, seed in (("one", "UTC", "1"), ("two", "Pacific/Auckland", "2")):
        environment = {**environment_of(Variant("lightning", "2.2.5")), "TZ": zone, "PYTHONHASHSEED": seed}
        status, output = execute([*BUILD, "2.2.5", "--output", str(tmp_path / name)], environment, 120)
        assert status == 0, output
        written.append(next((tmp_path / name).glob("*.whl")).read_bytes())
    assert written[0] == written[1]


def test_only_with_the_word_default_adds_to_the_default_set(tmp_path):
    official = _releases.wheel("lightning", "2.2.5")
    for chosen in ("default", "default,loader-sampler-kept"):
        assert cli.main(["fork", str(official), "--only", chosen, "--output", str(tmp_path)]) == 0
    expected = [_fork.default_set(), [*_fork.default_set(), "loader-sampler-kept"]]
    assert {path.name for path in tmp_path.iterdir()} == {_fork.make(official, one).wheel_name for one in expected}
    assert f"lightning-2.2.5+patches.{_diffs.NUMBER}-py3-none-any.whl" in {path.name for path in tmp_path.iterdir()}


def test_selection_has_its_own_version(tmp_path):
    all_of_them = _fork.make(_releases.wheel("lightning", "2.2.5"))
    one = _fork.make(_releases.wheel("lightning", "2.2.5"), ["logged-metrics-device"])
    other = _fork.make(_releases.wheel("lightning", "2.2.5"), ["dataloader-error-unmasked"])
    assert len({all_of_them.version, one.version, other.version}) == 3
    assert [diff.name for diff in one.diffs] == ["logged-metrics-device"]
    assert one.version.startswith(f"2.2.5+patches.{_diffs.NUMBER}.only.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2.6.3"], "was compromised: use any other release"),
        (["1.7.7"], "is not a release since 1.8 that this lightning-patches knows"),
        (["2.4.0", "--only", "logged-metrics-device"], "2.4.0 does not have the bug of logged-metrics-device"),
        (["2.2.5", "--only", "no-such-patch"], "there is no patch, issue or pull request"),
        (["2.2.5", "--only", ""], "there is no patch, issue or pull request"),
        (["2.2.5.whl"], "2.2.5.whl is not the file name of a wheel of lightning or pytorch-lightning on PyPI"),
        (["missing/lightning-2.2.5-py3-none-any.whl"], "No such file"),
    ],
)
def test_refused_fork_names_the_reason(tmp_path, arguments, message):
    environment = environment_of(Variant("lightning", "2.2.5"))
    status, output = execute([*BUILD, *arguments, "--output", str(tmp_path)], environment, 60)
    assert status == 2, output
    assert message in output
    assert not list(tmp_path.iterdir())


def test_fork_names_a_release_as_pip_does(tmp_path):
    environment = environment_of(Variant("lightning", "2.2.5"))
    only = ["--only", "logged-metrics-device", "--output", str(tmp_path)]
    for release in ("==2.2", " == 2.2.0", "lightning==2.2"):
        status, output = execute([*BUILD, release, *only], environment, 60)
        assert status == 0, output
        assert "1 patch is in the wheel: logged-metrics-device" in output
    assert [path.name.split("+")[0] for path in tmp_path.iterdir()] == ["lightning-2.2.0"]


def test_wheel_has_the_default_set_unless_all_is_given():
    for distribution, version in (("lightning", "2.0.0"), ("pytorch-lightning", "2.3.3"), ("lightning", "2.6.6")):
        official = _releases.wheel(distribution, version)
        fork, everything = _fork.make(official, _fork.default_set()), _fork.make(official)
        opt_in = {diff.name for diff in everything.diffs} - {diff.name for diff in fork.diffs}
        assert opt_in == {diff.name for diff in everything.diffs if not _diffs.record(diff.name).default} != set()
        assert fork.version == f"{version}+patches.{_diffs.NUMBER}"


def test_package_without_diffs_is_reported(tmp_path):
    with pytest.raises(_diffs.DiffError, match="use an installed lightning-patches"):
        _diffs.series(tmp_path / "diffs")


def test_unofficial_wheel_is_refused(tmp_path):
    other = tmp_path / "lightning-2.2.5-py3-none-any.whl"
    other.write_bytes(_releases.wheel("lightning", "2.2.4").read_bytes())
    with pytest.raises(LookupError, match="is not the wheel on PyPI"):
        _fork.make(other)


def test_wheel_exchanged_after_its_check_is_not_used(tmp_path, monkeypatch):
    official = _releases.wheel("lightning", "2.2.5")
    expected = _fork.make(official, _fork.default_set()).content
    copy = tmp_path / official.name
    copy.write_bytes(official.read_bytes())
    selected = _diffs.selected

    def exchange(*arguments):
        copy.write_bytes(_releases.wheel("lightning", "2.2.4").read_bytes())
        return selected(*arguments)

    monkeypatch.setattr(_diffs, "selected", exchange)
    fork = _fork.make(copy, _fork.default_set())
    assert _fork.write_wheel(fork, tmp_path / "dist").read_bytes() == fork.content == expected


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "it is not a regular file"),
        (make_device, "it is not a regular file"),
        (make_gigabyte, "it is larger than 16 MB"),
    ],
)
def test_file_that_is_not_a_wheel_is_refused(tmp_path, make, why):
    wheel = tmp_path / "lightning-2.2.5-py3-none-any.whl"
    make(wheel)
    environment = environment_of(Variant("lightning", "2.2.5"))
    status, output = execute([*BUILD, str(wheel), "--output", str(tmp_path / "dist")], environment, 60)
    assert status == 2, output
    assert f"no wheel was built: {wheel} cannot be read: {why}" in " ".join(output.split())
    assert not (tmp_path / "dist").exists()


def test_wheel_with_excessive_content_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_fork, "MAX_UNPACKED", 1 << 20)
    with pytest.raises(ValueError, match="the files in the wheel have more than 1 MB"):
        _fork.make(_releases.wheel("lightning", "2.2.5"))


PROGRAM = """
import json
import {package} as pl
import lightning_patches
entries = [e.as_dict() for e in lightning_patches.report() if e.namespace == "{namespace}"]
print(json.dumps({{"version": pl.__version__, "file": pl.__file__, "entries": entries}}))
"""


def test_installed_fork_is_recognized_and_nothing_is_applied_twice(tmp_path):
    """pip installs it, finds no broken requirement, and removes it. In between, the shim's verdicts are checked."""
    wheel = _fork.write_wheel(_fork.make(_releases.wheel("pytorch-lightning", "2.2.5")), tmp_path)
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # The packages of this environment are the fork's dependencies. They may be in several directories.
    (site / "parent.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))

    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*pip, "check"], capture_output=True, text=True)
    complaints = [line for line in done.stdout.splitlines() if line.startswith("pytorch-lightning ")]
    assert not complaints, done.stdout

    environment = environment_of(Variant("pytorch-lightning", "2.2.5", directory=site))
    environment["PYTHONPATH"] = str(ROOT)
    program = PROGRAM.format(package="pytorch_lightning", namespace="pytorch_lightning")
    program = f"import lightning_patches\n{program}"
    status, output = execute([str(python), "-c", program], environment, 120, cwd=str(tmp_path))
    assert status == 0, output
    facts = json.loads(output.splitlines()[-1])
    assert facts["version"] == f"2.2.5+patches.{_diffs.NUMBER}.all"
    assert facts["file"].startswith(str(site))
    verdicts = {entry["patch"]: entry["verdict"] for entry in facts["entries"]}
    with_diff = {diff.name for diff in _diffs.selected("2.2.5")}
    changed = {path[: -len(".py")].replace("/", ".") for diff in _diffs.selected("2.2.5") for path, _ in diff.changes}
    for patch in catalogue.all_patches():
        if patch.name in with_diff:
            assert verdicts[patch.name] == "fixed-upstream", facts
        elif "2.2.5" not in gate.affected_releases(patch):
            assert verdicts[patch.name] in ("not-affected", "fixed-upstream"), facts
        elif not changed & {target.location.partition(":")[0] for target in patch.targets}:
            assert verdicts[patch.name] == ("applied" if patch.default else "disabled"), patch.name
    assert "fix" not in output.replace("fixed-upstream", "").partition("{")[0], output

    done = subprocess.run([*pip, "uninstall", "--yes", "pytorch-lightning"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [path.name for path in site.iterdir() if "lightning" in path.name]


def test_fork_directory_equals_its_wheel(tmp_path):
    fork = _fork.make(_releases.wheel("lightning", "2.3.3"))
    directory = forks.directory_of("lightning", "2.3.3")
    _releases.unpack(_fork.write_wheel(fork, tmp_path), tmp_path / "unpacked")
    left, right = (
        {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.suffix != ".pyc"}
        for root in (directory, tmp_path / "unpacked")
    )
    assert left == right
