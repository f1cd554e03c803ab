import json
import subprocess
import sys

import pytest

from tests.patches.imports import _without_setuptools
from tests.support.run import ROOT, execute
from tests.support.variants import Variant, environment_of

import _releases  # isort: skip


MESSAGE = "No module named 'pkg_resources'"


# ---------------------------------------------------------------- the three ways in, and Fabric without the Trainer
FABRIC = """
import sys
from lightning_fabric import Fabric
print(Fabric.__module__, "pkg_resources" in sys.modules, sys.executable)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The Python of an environment without setuptools, which can import this package."""
    directory = tmp_path_factory.mktemp("bare")
    python = _without_setuptools.make(directory / "environment")
    (site,) = directory.glob("environment/lib/*/site-packages")
    (site / "checkout.pth").write_text(f"{ROOT}\n{ROOT / 'lightning_patches' / 'outside'}\n")
    return python, directory


@pytest.fixture(scope="module")
def variables(bare):
    """``lightning-fabric`` 2.2.0 and nothing else of Lightning."""
    alone = bare[1] / "fabric"
    alone.mkdir()
    whole = _releases.unpacked("pytorch-lightning", "2.2.0")
    (alone / "lightning_fabric").symlink_to(whole / "lightning_fabric")
    found = environment_of(Variant("pytorch-lightning", "2.2.0", directory=alone))
    return {**found, "HOME": str(bare[1])}


def test_fabric_alone_is_patched_by_import_and_launcher(bare, variables):
    python, directory = bare
    program = directory / "program.py"
    program.write_text(FABRIC)
    status, output = execute([python, str(program)], variables, 60)
    assert status == 1 and MESSAGE in output, output
    program.write_text("import lightning_patches\n" + FABRIC)
    expected = f"lightning_fabric.fabric False {python}"
    status, output = execute([python, str(program)], variables, 60)
    assert status == 0 and expected in output, output
    program.write_text(FABRIC)
    launched = [python, "-m", "lightning_patches", "run", str(program)]
    status, output = execute(launched, variables, 60)
    assert status == 0 and expected in output, output


def test_fabric_alone_is_patched_by_autostart(bare, variables):
    python, _ = bare
    enabled = subprocess.run(
        [python, "-m", "lightning_patches", "autostart", "enable"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert enabled.returncode == 0, enabled.stderr
    try:
        asleep = execute([python, "-c", FABRIC], variables, 60)
        assert asleep[0] == 1 and MESSAGE in asleep[1], asleep
        awake = execute([python, "-c", FABRIC], {**variables, "LIGHTNING_PATCHES": "default"}, 60)
        assert awake[0] == 0 and "lightning_fabric.fabric False" in awake[1], awake
    finally:
        subprocess.run([python, "-m", "lightning_patches", "autostart", "disable"], env=variables, check=True)


# ---------------------------------------------------------------- with setuptools
THERE = """
import json, sys
import lightning_patches
import lightning_fabric
entry = [e for e in lightning_patches.report() if e.patch == "import-without-pkg-resources"][0]
declared = getattr(sys.modules.get("pkg_resources"), "_namespace_packages", {})
left = lightning_patches.deactivate()
print(json.dumps([entry.verdict, "lightning_fabric" in declared, left, "__import__" in vars(lightning_fabric)]))
"""


def test_installed_pkg_resources_is_used(variables):
    status, output = execute([sys.executable, "-c", THERE], variables, 60)
    assert status == 0, output
    assert json.loads(output.splitlines()[-1]) == ["applied", True, [], False]


def test_broken_pkg_resources_counts_as_missing(bare, variables):
    """A setuptools from before Python 3.12, in a Python without pkgutil.ImpImporter."""
    python, directory = bare
    (directory / "old").mkdir()
    (directory / "old" / "pkg_resources.py").write_text("import pkgutil\npkgutil.ImpImporterOfLongAgo\n")
    old = {**variables, "PYTHONPATH": f"{directory / 'old'}:{variables['PYTHONPATH']}"}
    status, output = execute([python, "-c", FABRIC], old, 60)
    assert status == 1 and "ImpImporterOfLongAgo" in output, output
    status, output = execute([python, "-c", "import lightning_patches\n" + FABRIC], old, 60)
    assert status == 0 and "lightning_fabric.fabric False" in output, output


WARNINGS = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import lightning_patches_or_not, lightning.fabric
for warning in caught:
    if "pkg_resources" in str(warning.message):
        print(warning.category.__name__, warning.filename, warning.lineno, warning.message)
"""


def warnings_of(shim: bool) -> list[str]:
    program = WARNINGS.replace("lightning_patches_or_not", "lightning_patches" if shim else "os")
    variables = environment_of(Variant("lightning", "2.2.5", shim=shim))
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_deprecation_warning_is_the_same_as_on_stock():
    pytest.importorskip("pkg_resources")
    stock = warnings_of(shim=False)
    assert any("lightning/fabric/__init__.py" in line and "deprecated as an API" in line for line in stock)
    assert warnings_of(shim=True) == stock


def test_package_is_from_this_checkout(bare, variables):
    """The environments above see only the packages in their variables."""
    asked = (
        "import lightning_patches, importlib.util as u; print(lightning_patches.__file__, u.find_spec('setuptools'))"
    )
    status, output = execute([bare[0], "-c", asked], {**variables, "LIGHTNING_PATCHES": "off"}, 60)
    assert (status, output.strip()) == (0, f"{ROOT / 'lightning_patches' / '__init__.py'} None")
