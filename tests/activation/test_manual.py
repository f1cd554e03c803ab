"""The commands of the READMEs, and the manual's examples for clusters, images and notebooks, work as described."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.activation.conftest import PATCHES, PROGRAMS, RELEASE, ROOT, Environment, environment_of, write_script
from tests.support.variants import Variant

MANUAL = (ROOT / "upstream" / "MANUAL.md").read_text()
(COLLECT, EXPORT, JOB), (DOCKERFILE,), (CELL,) = (
    re.findall(rf"^```{language}\n(.*?)^```$", MANUAL, re.M | re.S) for language in ("sh", "dockerfile", "python")
)
TRAIN = """
import json, os
import lightning.pytorch
from lightning.pytorch.loops.fetchers import _DataFetcher
from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection
live = [getattr(f, "__lightning_patches__", []) for f in (_ResultCollection.update_metrics, _DataFetcher.reset)]
rank = os.environ.get("SLURM_PROCID", "0")
with open(f"told-{rank}.json", "w") as file:
    json.dump(sorted({name for names in live for name in names}), file)
"""
PATCHED = "patched by: logged-metrics-device"
LOOK = """
import sys
from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection
print(*sys.argv[1:], "patched by:", *getattr(_ResultCollection.update_metrics, "__lightning_patches__", ["none"]))
"""
INSTALL = "pip install --no-index --find-links wheels lightning-patches"
SAYS = {
    INSTALL: "Successfully installed lightning-patches",
    "python train.py": "patched by: none",
    "lightning-patches run train.py": PATCHED,
    "lightning-patches run train.py --my-flag": f"--my-flag {PATCHED}",
    "lightning-patches autostart enable": "From now on, programs",
    "LIGHTNING_PATCHES=1 python train.py": PATCHED,
    "import lightning_patches": PATCHED,
    "lightning-patches diagnose train.log": "logged-metrics-device",
    "lightning-patches audit lightning==2.2.5": "lightning 2.2.5 has",
    "lightning-patches status": "lightning 2.3.3: ",
    "lightning-patches doctor": " checks: ",
    "lightning-patches autostart disable && pip uninstall lightning-patches": "uninstalled lightning-patches",
}
"""The commands of the front pages, and a part of each output in an environment with Lightning 2.3.3."""
NO_NETWORK = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}


def reports(directory: Path) -> dict[str, list[str]]:
    return {path.stem: json.loads(path.read_text()) for path in directory.glob("told-*.json")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the first snippet with the path of this checkout. Return the directory that contains ``wheels``."""
    home = tmp_path_factory.mktemp("with network")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, home / "checkout", ignore=ignored)
    (word,) = re.findall(r"git\+\S+", COLLECT)
    pip = f"{shlex.quote(sys.executable)} -m pip"
    script = COLLECT.replace(word, "./checkout").replace("pip ", f"{pip} ", 1)
    done = subprocess.run(["sh", "-ec", script], cwd=home, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    names = {path.name.partition("-")[0] for path in (home / "wheels").iterdir()}
    assert {"lightning_patches", "wrapt", "packaging"} <= names
    return home


@pytest.fixture
def bare(fresh_environment: Environment) -> Environment:
    """Return an environment with torch and Lightning's requirements, without this package and wrapt."""
    for path in fresh_environment.site.glob("*.pth"):
        path.unlink()
    ours = ("wrapt", "lightning_patches", "_lightning_patches", "__editable__", "__pycache__")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(ours) and path.suffix != ".pth":
            (fresh_environment.site / path.name).symlink_to(path)
    for name in ("lightning-patches", "torchrun"):
        (fresh_environment.directory / "bin" / name).unlink()
    return fresh_environment


def commands_of(page: str) -> list[str]:
    """Return the commands of the indented blocks, without comments and without output of commands after a ``$``."""
    found = []
    for block in re.findall(r"(?:^    \S.*\n|(?<=\n)\n(?=    \S))+", page, re.M):
        lines = [re.split(r"  +#", line.strip())[0] for line in block.splitlines() if line.strip()]
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        found += prompted or lines
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "upstream/README.zh.md"])
def test_commands_of_the_readme_print_what_it_says(page: str, wheels: Path, bare: Environment, tmp_path: Path) -> None:
    """Runs them in the order of the page, but the installation first, and without scripts/, which install torch."""
    write_script(bare, "pip", "pip._internal.cli.main:main")
    (tmp_path / "train.py").write_text(LOOK)
    (tmp_path / "train.log").write_text("RuntimeError: No backend type associated with device type cpu\n")
    found = [each for each in commands_of((ROOT / page).read_text()) if not each.startswith("scripts/")]
    (install,) = (each for each in found if each.startswith("pip install git+"))
    found.remove(install)
    (tmp_path / "wheels").symlink_to(wheels / "wheels")
    for command in (INSTALL, *found):
        assert command in SAYS, f"{page}: this test does not know what {command!r} says"
        if command.startswith("import "):
            (tmp_path / "own.py").write_text(f"{command}\n{LOOK}")
        done = subprocess.run(
            ["sh", "-c", "python own.py" if command.startswith("import ") else command],
            cwd=tmp_path, env=bare.variables(), input="y\n", capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert SAYS[command] in " ".join(done.stdout.split()), f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_slurm_job_of_the_manual_is_patched_without_a_network(wheels: Path, bare: Environment, tmp_path: Path) -> None:
    (tmp_path / "wheels").symlink_to(wheels / "wheels")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").symlink_to(PROGRAMS / "srun")
    once = bare.variables(lightning=False, HOME=str(tmp_path), **NO_NETWORK)
    done = subprocess.run(["sh", "-ec", EXPORT], cwd=tmp_path, env=once, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert JOB.count("export ") == done.stdout.count("export ") == 2
    before = {path.name for path in bare.site.iterdir()}

    (tmp_path / "job.sh").write_text(JOB)
    variables = bare.variables(HOME=str(tmp_path))
    variables["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{variables['PATH']}"
    done = subprocess.run(["sh", "job.sh"], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert reports(tmp_path) == {"told-0": sorted(PATCHES), "told-1": sorted(PATCHES)}, done
    assert {path.name for path in bare.site.iterdir()} - {"__pycache__"} == before


@pytest.mark.slow
def test_dockerfile_of_the_manual_patches_its_program(wheels: Path, bare: Environment, tmp_path: Path) -> None:
    """Runs the lines of the Dockerfile in an environment instead of an image."""
    for name in ("pip", "pip3"):
        write_script(bare, name, "pip._internal.cli.main:main")
    (tmp_path / "train.py").write_text(TRAIN)
    variables = bare.variables(**NO_NETWORK)
    copied: dict[str, str] = {}
    for line in DOCKERFILE.splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            source, target = rest.split()
            copied[target] = str(wheels / source)
        elif word == "ENV":
            name, _, value = rest.partition("=")
            variables[name] = value
        elif word in ("RUN", "CMD"):
            for target, source in copied.items():
                rest = rest.replace(target, shlex.quote(source))
            command = ["sh", "-ec", rest] if word == "RUN" else json.loads(rest)
            done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        else:
            assert word == "FROM", line
    assert reports(tmp_path) == {"told-0": sorted(PATCHES)}
    off = {**variables, "LIGHTNING_PATCHES": "off"}
    subprocess.run([bare.python, "train.py"], cwd=tmp_path, env=off, check=True, timeout=300)
    assert reports(tmp_path) == {"told-0": []}


def test_notebook_cell_of_the_manual_shows_applied_patches(tmp_path: Path) -> None:
    """Runs the cell in an interactive Python, and displays its last value."""
    lines = CELL.strip().splitlines()
    program = f"exec({chr(10).join(lines[:-1])!r})\nvalue = eval({lines[-1]!r})\n"
    program += "print({e.verdict for e in value if e.patch == 'logged-metrics-device'}, '<' in value._repr_html_())\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment_of(RELEASE), cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout == "{'applied'} True\n", done


@pytest.mark.slow
@pytest.mark.parametrize("command", ["python train.py", "lightning-patches run train.py"])
def test_readme_example_prints_as_shown(command: str, tmp_path: Path) -> None:
    (shown,) = re.findall(rf"\$ {command}.*\n    (.*)\n    (.*)\n", (ROOT / "README.md").read_text())
    run = ["-m", "lightning_patches", "run"] if "run" in command else []
    program = [sys.executable, *run, str(ROOT / "scripts" / "_demo_programs" / "lr_finder_callback.py")]
    variables = environment_of(Variant("lightning", "2.2.5"))
    done = subprocess.run(program, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-2:] == list(shown), done
