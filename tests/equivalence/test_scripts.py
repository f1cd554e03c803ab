"""Scripts for maintainers: comparisons with upstream, and the proof of a release."""

import argparse
import os
import subprocess
import sys
import time

import pytest

from tests.support.scripts import load
from tests.support.variants import ROOT


def script(name, *arguments, **variables):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)], env={**os.environ, **variables},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip


def test_every_difference_from_the_official_code_is_explained():
    done = script("check_diffs")
    assert done.returncode == 0, done.stdout + done.stderr
    after = done.stdout.partition("amp-skipped-batch:")[2]
    assert after.splitlines()[1] == "  MixedPrecisionPlugin.optimizer_step: identical", done.stdout
    assert "dataloader-error-unmasked: no official fix to compare with" in done.stdout
    assert "+    self[key].to(value.device)" in script("check_diffs", "logged-metrics-device").stdout


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
    parts = [proven(prove, name) for name in ("boundaries", "upstream 2.2.5")]
    assert parts[0].total == "2 passed, 1 failed, 1 skipped"
    page = prove.page("0.2.0", "abc", [*parts, prove.Part("gpu", not_run=["no card"])])
    for line in (
        "| boundaries | 2 passed, 1 failed, 1 skipped | 0 |",
        "| upstream 2.2.5 | not run: no repository was given (--upstream) | 0 |",
        "| gpu | not run: no card | 0 |",
        "- boundaries: align_devices: bug: a [y lightning 2.2.5 affected]: stock does not show it",
        "- boundaries: 1 tests: no Python with an old torch",
        "| align-devices | 2.0.0 to 2.6.6 | 1 of 2 | 1 of 1 |",
    ):
        assert line in page.splitlines(), page
    assert "**1 things are not as they have to be.**" in page
    assert "All that was run is as it has to be." in prove.page("0.2.0", "abc", [prove.Part("gpu", "3 passed")])


def test_result_of_a_part_is_used_only_at_its_commit(monkeypatch, tmp_path):
    prove = load("prove")
    monkeypatch.setenv("LIGHTNING_PATCHES_TEST_CACHE", str(tmp_path))
    prove.Results("0.3.0", "abc").keep(prove.Part("gpu", "3 passed", by_patch={"a": {"b": "c"}}))
    assert prove.Results("0.3.0", "abc").of(prove.Part("gpu")).by_patch == {"a": {"b": "c"}}
    assert (
        prove.Results("0.3.0", "def").of(prove.Part("gpu")).summary == "not run: its result is of another commit, abc"
    )
    assert prove.Results("0.3.0", "abc").of(prove.Part("wheel", not_run=["not run"])).summary == "not run: not run"


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
