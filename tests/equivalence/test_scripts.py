"""Scripts for maintainers: comparisons with upstream, and the proof of a release."""

import argparse
import os
import subprocess
import sys
import time

import pytest

from lightning_patches import patches as catalogue
from tests.support.scripts import load
from tests.support.variants import ROOT


def script(name, *arguments, **variables):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=500,
    )


def test_every_difference_from_the_official_code_is_explained():
    done = script("check_diffs")
    assert done.returncode == 0, done.stdout + done.stderr
    after = done.stdout.partition("amp-skipped-batch:")[2]
    assert after.splitlines()[1] == "  MixedPrecisionPlugin.optimizer_step: identical", done.stdout
    assert "dataloader-error-unmasked: no official fix to compare with" in done.stdout
    assert "+    self[key].to(value.device)" in script("check_diffs", "logged-metrics-device").stdout


def test_rehearse_uses_the_script_of_sid_when_debootstrap_has_none_for_the_suite(tmp_path):
    installed = tmp_path / "installed"
    (installed / "scripts").mkdir(parents=True)
    for name in ("functions", "scripts/sid", "scripts/trixie"):
        (installed / name).write_text(name)
    rehearse = load("rehearse")
    assert rehearse.scripts_for("trixie", tmp_path / "copy", installed) == installed
    copy = rehearse.scripts_for("forky", tmp_path / "copy", installed)
    assert (copy / "scripts" / "forky").read_text() == "scripts/sid"
    assert (copy / "functions").read_text() == "functions"
    assert not (installed / "scripts" / "forky").exists()


@pytest.mark.parametrize(("option", "status"), [((), 2), (("--if-possible",), 0)])
def test_rehearse_names_the_reason_if_no_debian_can_be_created(option, status, tmp_path):
    done = script("rehearse", *option, PATH=str(tmp_path), LIGHTNING_PATCHES_TEST_CACHE=str(tmp_path))
    assert done.returncode == status, done
    assert "not rehearsed on trixie: there is no debootstrap" in done.stdout, done


@pytest.mark.slow
@pytest.mark.distributed
def test_demo_shows_five_bugs_and_their_fixes():
    done = script("demo", "--here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "5 bugs shown and fixed", done.stdout


REPORT = """<testsuites><testsuite><properties><property name="card" value="A card"/></properties>
<testcase classname="tests.patches.devices.align_devices"
name="bug: a [x lightning 2.2.5 affected]"/>
<testcase classname="tests.patches.devices.align_devices"
name="bug: a [y lightning 2.2.5 affected]"><failure message="stock does not
show it"/></testcase>
<testcase classname="tests.patches.devices.align_devices"
name="bug: a [x, 2.6.6, default set]"/>
<testcase classname="tests.patches.devices.align_devices"
name="bug: a [z lightning 2.2.5 affected]">
<skipped message="no Python with an old torch"/></testcase>
</testsuite></testsuites>"""


def proven(prove, name, **given):
    """Return the result of a part of ``scripts/prove``."""
    part, usual = prove.Part(name), {"patches": [], "jobs": 1, "minutes": 1, "until": time.time() + 60}
    usual["torch"] = ["none"]  # no stack is installed
    not_asked_for = dict.fromkeys(("upstream", "libraries", "gpu_results", "torch_index"))
    prove.attempt(part, argparse.Namespace(**{**usual, **not_asked_for, **given}))
    return part


def test_proof_page_has_a_row_per_patch_and_every_exception(monkeypatch, tmp_path):
    prove = load("prove")
    (tmp_path / "report.xml").write_text(REPORT)

    def run_pytest(part, arguments, until):
        tests, _ = prove.read_report(tmp_path / "report.xml")
        prove.tell(part, tests, {})
        return tests

    monkeypatch.setattr(prove, "run_pytest", run_pytest)
    parts = [proven(prove, name) for name in ("boundaries", "upstream", "stacks")]
    assert parts[0].total == "2 passed, 1 failed, 1 skipped"
    page = prove.page("0.2.0", "abc", [*parts, prove.Part("gpu", not_run=["no card"])])
    for line in (
        "| boundaries | 2 passed, 1 failed, 1 skipped | 0 |",
        "| upstream | not run: no repository was given (--upstream) | 0 |",
        "| gpu | not run: no card | 0 |",
        "- boundaries: align_devices: bug: a [y lightning 2.2.5 affected]: stock does not show it",
        "- boundaries: 1 tests: no Python with an old torch",
        "| align-devices | 2.0.0 to 2.6.6 | 1 of 2 | 1 of 1 |",
    ):
        assert line in page.splitlines(), page
    assert "**1 things are not as they have to be.**" in page
    assert "All that was run is as it has to be." in prove.page("0.2.0", "abc", [prove.Part("gpu", "3 passed")])


def test_proof_page_has_a_bounded_length():
    prove = load("prove")
    names = {patch.name: "5 of 5" for patch in catalogue.all_patches()}
    part = prove.Part("boundaries", "many", [f"wrong {n}" for n in range(500)], ["a note"] * 90, by_patch={"a": names})
    page = prove.page("0.2.0", "abc", [part] * 8)
    assert len(page.splitlines()) <= prove.MOST_LINES
    assert "more" in page and page.count("- boundaries: wrong") > 10


def test_proof_page_includes_gpu_results(tmp_path):
    (tmp_path / "gpu.xml").write_text(REPORT)
    part = proven(load("prove"), "gpu", gpu_results=tmp_path / "gpu.xml")
    assert (part.total, part.notes) == ("2 passed, 1 failed, 1 skipped", ["card A card"])
    assert len(part.wrong) == 1


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """``scripts/prove`` of a checkout that has only a ``tests`` folder."""
    prove = load("prove")
    monkeypatch.setattr(prove, "ROOT", tmp_path)
    monkeypatch.setattr(prove._environment, "enter", lambda: None)
    monkeypatch.setattr(prove, "commit_of_tree", lambda: ("abc", True))
    (tmp_path / "upstream").mkdir()
    (tmp_path / "tests" / "differential").mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--until')\n")
    return prove


def test_proof_page_includes_differential_findings(monkeypatch, checkout, tmp_path):
    package = tmp_path / "tests" / "differential"
    for path in (package.parent / "__init__.py", package / "__init__.py"):
        path.touch()
    (package / "__main__.py").write_text(
        "import sys\n"
        "table = '| release | programs | findings |\\n| --- | --- | --- |\\n| 2.2.5 | 3 | 1 |\\n'\n"
        "open(sys.argv[-1], 'w').write(table + '\\n- `gan`: no patch alone\\n  - stock: `1`\\n')\n"
        "sys.exit(1)"
    )
    monkeypatch.setattr(checkout, "RELEASES", ("2.2.5",))
    part = proven(checkout, "differential", seeds=(0, 3))
    assert part.total == "seeds 0 to 2; release 2.2.5, programs 3, findings 1"
    assert part.wrong == ["2.2.5: `gan`: no patch alone"]


def test_failed_test_is_repeated_alone(checkout, tmp_path):
    (tmp_path / "tests" / "differential" / "test_compiled.py").write_text(
        "from pathlib import Path\n"
        "def test_right(): pass\n"
        "def test_invalid_arguments_are_refused(): assert 1 == 2\n"
        "def test_unsteady():\n"
        "    before = Path(__file__).with_name('before')\n"
        "    seen = before.exists()\n"
        "    before.touch()\n"
        "    assert seen\n"
    )
    part = proven(checkout, "compiled")
    assert part.total == "2 passed, 1 failed"
    assert part.notes == ["test_compiled: test_unsteady failed among other tests, and passed alone"]
    assert [line.split(": ")[:2] for line in part.wrong] == [["test_compiled", "test_invalid_arguments_are_refused"]]


def test_crashed_second_run_keeps_the_failure(checkout, tmp_path):
    (tmp_path / "tests" / "differential" / "test_compiled.py").write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "def test_right(): pass\n"
        "def test_invalid_arguments_are_refused():\n"
        "    before = Path(__file__).with_name('before')\n"
        "    if before.exists(): os.kill(os.getppid(), signal.SIGKILL)\n"
        "    before.touch()\n"
        "    assert 1 == 2\n"
    )
    part = proven(checkout, "compiled")
    assert (part.total, part.notes) == ("1 passed, 1 failed", [])


def test_crashed_run_counts_as_failed(checkout, tmp_path):
    test = tmp_path / "tests" / "differential" / "test_compiled.py"
    test.write_text("import os\ndef test_killed(): os._exit(3)\n")
    assert any("crashed" in line for line in proven(checkout, "compiled").wrong)
    test.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    assert proven(checkout, "compiled").wrong == ["pytest ended with status -9 after 0 tests", "no test ran"]


@pytest.mark.parametrize("error", [ValueError("no disk"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_failed_part_keeps_the_results_of_others(monkeypatch, checkout, tmp_path, error):
    def dies(part, options):
        part.notes.append("half of it was right")
        raise error

    def passes(part, options):
        part.total = "3 passed"

    monkeypatch.setattr(checkout, "PARTS", {"first": passes, "second": dies, "third": passes})
    monkeypatch.setattr(checkout.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["prove"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    if isinstance(error, Exception):
        assert checkout.main() == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            checkout.main()
    (path,) = (tmp_path / "upstream" / "proof").iterdir()
    page = path.read_text()
    for line in (
        "| first | 3 passed | 0 |",
        "| second | not finished | 0 |",
        "- second: half of it was right",
        f"- second: it ended in {type(error).__name__}: {error}".rstrip(),
        "| third | 3 passed | 0 |" if isinstance(error, Exception) else "| third | not run: the run ended before | 0 |",
    ):
        assert line in page.splitlines(), page


def test_library_is_patched_in_one_variant_only(monkeypatch, tmp_path):
    """Also if the parent process has read only our records, and so has no patches."""
    outside = load("_outside_tests.py")
    source = tmp_path / "source"
    source.mkdir()
    (source / "test_it.py").write_text(
        "import sys, lightning.pytorch\n\n\ndef test_it():\n"
        "    ours = sys.modules.get('lightning_patches')\n"
        "    assert ours and any(entry.verdict == 'applied' for entry in ours.report())\n"
    )
    monkeypatch.setattr(outside, "prepare_library", lambda library: (source, sys.executable))
    release = outside._releases.unpacked("lightning", "2.2.5")
    monkeypatch.setattr(outside._releases, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(outside._releases, "unpacked", lambda distribution, version: release)
    monkeypatch.setenv("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")
    (tmp_path / "dependents").mkdir()
    stock, shim = outside.run_library(outside.Library("a", "1", "lightning", ("test_it.py",), ()), "2.2.5", 120)
    assert (*stock.values(), *shim.values()) == ("failed", "passed")


def test_parts_without_time_are_reported_as_not_run(checkout):
    part = proven(checkout, "compiled", minutes=90, until=time.time() - 1)
    assert part.summary == "not run: 90 minutes were over (--minutes)"
