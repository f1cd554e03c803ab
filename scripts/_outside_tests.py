"""Run tests of upstream, and of libraries that build on Lightning, on stock and with the patches; compare outcomes.

Upstream's CPU tests are those of a tag, and they test the release's wheel. Both variants run in the same environment,
file by file. Tests with different outcomes run again in both variants, without the others. A test that passes on stock
and fails with the patches both times is a regression. It is explained if the test encodes the bug
(``upstream/upstream_tests.explained``): upstream changed that test with the fix, as the repository's history must
confirm, or upstream never fixed the bug, and the test passes with the patches except the one for that bug.

:data:`NEEDS` lists the requirements besides torch.

Each library is installed from its source distribution, with its tests, into an environment that shares torch with that
of ``scripts/test``. If outcomes differ, everything runs again in both variants. The outcomes stay in the tests' cache.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import _environment
import _releases
from packaging.version import Version

from lightning_patches import patches as catalogue

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("tests/tests_pytorch", "tests/tests_fabric")
NEEDS = (
    *("pytest>=8.4,<9", "pytest-timeout", "pytest-rerunfailures", "pytest-random-order", "pytest-xdist"),
    *("cloudpickle", "scikit-learn", "onnx", "onnxruntime", "onnxscript", "pandas", "fastapi", "uvicorn", "psutil"),
    *("tensorboard", "tensorboardX", "click", "jsonargparse[signatures]", "omegaconf", "hydra-core", "matplotlib"),
    *("lightning-utilities", "torchmetrics<1.10", "fsspec[http]", "PyYAML", "rich", "tqdm", "requests", "numpy"),
    *("setuptools<81", "typing-extensions", "packaging", "wrapt"),
)
# Ignore warnings of a newer torch or setuptools, since some of upstream's tests count warnings.
FILTERS = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:pkg_resources")
EXPLAINED = ROOT / "upstream" / "upstream_tests.explained"
_NEVER_FIXED = {patch.name for patch in catalogue.all_patches() if not patch.upstream.fixed_in}


class RefusedError(Exception):
    """They cannot be run."""


@dataclass
class Compared:
    """The comparison for a tag.

    Args:
        tag: the release.
        counts: numbers of outcomes that are equal in both variants.
        regressions: tests that the patches break, each with the pull request or patch that explains it, or "".
        fixed: tests that pass only with the patches.
        flaky: tests with different outcomes in two runs.
    """

    tag: str
    counts: Counter[str]
    regressions: dict[str, str] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)

    @property
    def defects(self) -> list[str]:
        return [test for test, explanation in self.regressions.items() if not explanation]


class Upstream:
    """A clone of upstream's repository with its tags, bare or not.

    Raises:
        RefusedError: it is not a git repository.
    """

    def __init__(self, path: Path) -> None:
        self._git = ["git", "-C", str(path)]
        if not path.is_dir() or subprocess.run([*self._git, "rev-parse"], capture_output=True).returncode:
            raise RefusedError(f"{path} is no git repository")

    def read(self, *command: str) -> str:
        """Return the output of a git command; "" if it fails, for example for a missing file."""
        return subprocess.run([*self._git, *command], capture_output=True, text=True, errors="replace").stdout

    def unpack(self, commit: str, paths: tuple[str, ...], directory: Path) -> None:
        """Put these files and folders of a commit into a directory."""
        archive = subprocess.run([*self._git, "archive", commit, *paths], capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(directory, filter="data")

    def extract(self, tag: str, directory: Path, distribution: str) -> None:
        """Put the tag's tests and pytest's configuration into a directory, as upstream's CI does for a distribution."""
        if not self.read("rev-parse", "--verify", "--quiet", f"refs/tags/{tag}"):
            raise RefusedError(f"there is no tag {tag}")
        self.unpack(tag, ("tests", "pyproject.toml"), directory)
        if distribution != "lightning":
            for path in directory.rglob("*.py"):
                text = path.read_text(encoding="utf-8")
                path.write_text(re.sub(r"\blightning\.(pytorch|fabric)\b", _in_own_package, text), encoding="utf-8")


def _in_own_package(found: re.Match[str]) -> str:
    return {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"}[found[1]]


def compare(
    upstream: Upstream,
    tag: str,
    directory: Path,
    python: str = sys.executable,
    jobs: int = 2,
    source: Optional[Path] = None,
    explained: Path = EXPLAINED,
) -> Compared:
    """Run a tag's tests in both variants.

    Args:
        upstream: the repository.
        tag: the release.
        directory: an empty one to work in.
        python: has torch and :data:`NEEDS`.
        jobs: files that run at the same time.
        source: test the packages in this directory, not the release's wheel.
        explained: the list of tests that encode a bug.
    """
    # lightning 2.0 imports the whole App and its dependencies; upstream tests both distributions in this way.
    distribution = "pytorch-lightning" if Version(tag) < Version("2.1") else "lightning"
    upstream.extract(tag, directory, distribution)
    source = source or _releases.unpacked(distribution, tag)
    several = ["--numprocesses", str(jobs), "--dist=loadfile", "--max-worker-restart=100"]

    def run(patched: bool, tests: Optional[list[str]] = None, without: str = "") -> dict[str, str]:
        return _outcomes(directory, source, python, patched, several if tests is None else [], tests, without)

    stock, shim = run(False), run(True)
    if not stock:
        raise RefusedError(f"no test of {tag} ran; see {directory}/pytest.log")
    differing = sorted(test for test in {*stock, *shim} if stock.get(test) != shim.get(test))
    again = [run(patched, differing) for patched in (False, True)]
    found = Compared(tag, Counter(outcome for test, outcome in stock.items() if test not in differing))
    for test in differing:
        first, second = (stock.get(test), shim.get(test)), (again[0].get(test), again[1].get(test))
        if first != second:
            found.flaky.append(test)
        elif first[0] == "passed":
            name = test.partition("[")[0]
            reasons = [reason for listed, reason in read_explained(explained) if listed == name]
            found.regressions[test] = _changed_with_fix(upstream, name, tag, reasons) or next(
                (patch for patch in _NEVER_FIXED.intersection(reasons) if run(True, [test], patch)[test] == "passed"),
                "",
            )
        elif first[1] == "passed":
            found.fixed.append(test)
    return found


def _outcomes(
    directory: Path,
    source: Path,
    python: str,
    patched: bool,
    options: list[str],
    tests: Optional[list[str]],
    without: str,
) -> dict[str, str]:
    package = directory / "shim"  # ours and no more: beside it may lie metadata of an installation
    package.mkdir(exist_ok=True)
    for name in ("lightning_patches", "lightning_patches/activation/entry_points/_lightning_patches"):
        link = package / Path(name).name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    unwanted = ("_LIGHTNING_PATCHES_IMPORT_ONLY", "LIGHTNING_PATCHES", "PL_RUN_STANDALONE_TESTS")
    variables = {name: value for name, value in os.environ.items() if name not in unwanted}
    path = [source, directory / "tests", *([package] if patched else [])]
    variables.update(
        PYTHONPATH=os.pathsep.join(map(str, path)),
        OMP_NUM_THREADS="1",
        # A newer torch sets it when it is imported, which upstream takes for a leak of the first test.
        TORCHINDUCTOR_CACHE_DIR=str(directory / "inductor"),
        **({"LIGHTNING_PATCHES": f"-{without}"} if without else {}),
    )
    found: dict[str, str] = {}
    for suite in SUITES:
        chosen = ["."] if tests is None else [t.removeprefix(f"{suite}/") for t in tests if t.startswith(f"{suite}/")]
        if not (directory / suite).is_dir() or not chosen:
            continue
        report = directory / "report.xml"
        report.unlink(missing_ok=True)
        command = [python, "-m", "pytest", "-q", "--tb=no", "--color=no", "-p", "no:cacheprovider"]
        command += ["--rootdir", str(directory), "-c", str(directory / "pyproject.toml"), "--timeout=120"]
        command += ["--import-mode=prepend", "--continue-on-collection-errors", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1", *(option for text in FILTERS for option in ("-W", text)), *options]
        command += ["-p", "lightning_patches"] if patched else []
        with open(directory / "pytest.log", "ab") as log:
            _environment.run([*command, *chosen], cwd=directory / suite, env=variables, stdout=log, stderr=log)
        if report.exists():
            found.update(_read(report))
    return found


def _read(report: Path) -> dict[str, str]:
    """Return ``passed``, ``failed`` or ``skipped`` of each test in pytest's JUnit file."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        path = case.get("file") or f"{str(case.get('classname')).replace('.', '/')}.py"
        inside = str(case.get("classname")).rpartition(Path(path).stem)[2].replace(".", "::")
        found[f"{path}{inside}::{case.get('name')}"] = outcome
    return found


def read_explained(path: Path) -> list[tuple[str, str]]:
    """Tests without their parameters, each with the pull request that changed it with the fix (``"#1234"``), or with
    the patch of a bug that upstream never fixed.

    Raises:
        ValueError: a line is of another form.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = re.fullmatch(r"(\S+\.py::\S+)\s+(#\d+|[a-z][a-z0-9-]+)", line.strip())
            if not parts:
                raise ValueError(f"{path.name}, line {number}: neither `path::test #1234` nor `path::test patch`")
            found.append((parts[1], parts[2]))
    return found


def _changed_with_fix(upstream: Upstream, test: str, tag: str, reasons: list[str]) -> str:
    """The pull request among these reasons that a patch's record has, and that changed this very test; else ""."""
    fixes = {f"#{number}" for patch in catalogue.all_patches() for number in patch.upstream.pull_requests}
    return next((pr for pr in reasons if pr in fixes and changed_by(upstream, test, int(pr[1:]), tag)), "")


def changed_by(upstream: Upstream, test: str, pull_request: int, tag: str) -> bool:
    """True if a commit of the pull request that is not in the tag changed or removed this test.

    Its file may have moved to another folder since the tag.
    """
    path, _, name = test.partition("::")
    grep = ("--fixed-strings", f"--grep=(#{pull_request})")
    for commit in upstream.read("log", "--all", "--format=%H", *grep, f"^{tag}").split():
        paths = upstream.read("diff", "--name-only", f"{commit}^", commit, "--", f"tests/**/{Path(path).name}")
        for changed in paths.split():
            before, after = (source_of(upstream.read("show", f"{at}:{changed}"), name) for at in (f"{commit}^", commit))
            if before is not None and before != after:
                return True
    return False


def source_of(text: str, name: str) -> Optional[str]:
    """The source of ``test_x`` or ``TestClass::test_x`` in a file, with its decorators; ``None`` if it is not there."""
    try:
        node: Any = ast.parse(text)
    except SyntaxError:
        return None
    for part in name.split("::"):
        node = next((child for child in node.body if getattr(child, "name", None) == part), None)
        if node is None:
            return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


@dataclass(frozen=True)
class Library:
    """A library.

    Args:
        version: version of its source distribution.
        distribution: the Lightning distribution that it imports.
        tests: paths of its tests.
        needs: further requirements of its tests.
        select: selected tests, as pytest's ``-k``.
    """

    name: str
    version: str
    distribution: str
    tests: tuple[str, ...]
    needs: tuple[str, ...]
    select: str = ""


LIBRARIES = (
    Library(
        "chemprop",
        "2.1.0",
        "lightning",
        ("tests/integration", "tests/cli/test_cli_regression_mol.py"),
        (
            "numpy<2",
            "pandas",
            "rdkit",
            "scikit-learn",
            "scipy",
            "astartes[molecules]",
            "ConfigArgParse",
            "rich",
            "descriptastorus",
        ),
        "not overfit",  # 100 and 200 epochs each: most of an hour on two processors
    ),
    Library(
        "pytorch-forecasting",
        "1.8.0",
        "lightning",
        ("tests/test_models", "tests/test_callbacks.py"),
        (
            "numpy<3",
            "scipy<2",
            "pandas<3",
            "scikit-learn<2",
            "scikit-base<1.1",
            "optuna",
            "tensorboard",
            "pytest-xdist",
        ),
        "not v2",
    ),
    Library(
        "darts",
        "0.35.0",
        "pytorch-lightning",
        tuple(
            f"darts/tests/models/forecasting/test_{name}.py"
            for name in ("ptl_trainer", "torch_forecasting_model", "RNN")
        ),
        (
            *("holidays", "joblib", "matplotlib", "narwhals", "nfoursid", "numpy<2.3", "pandas<3", "pyod", "requests"),
            *("scikit-learn<1.7", "scipy", "shap", "statsforecast", "statsmodels", "tqdm", "xarray", "xgboost"),
            *("tensorboardX", "typing-extensions"),
        ),
    ),
    Library(
        "gluonts",
        "0.16.0",
        "lightning",
        ("test/torch",),
        ("numpy<2.2", "pandas<3", "pydantic", "tqdm", "toolz", "typing-extensions", "scipy<1.16", "ujson", "orjson"),
    ),
    Library(
        "neuralforecast",
        "3.3.0",
        "pytorch-lightning",
        ("tests",),
        (
            "coreforecast",
            "numpy",
            "pandas<3",
            "scipy",
            "tornado",
            "safetensors",
            "optuna",
            "utilsforecast",
            "ray[tune]",
            "gitpython",
            "polars",
            "s3fs",
        ),
    ),
    Library(
        "scvi-tools",
        "1.3.3",
        "lightning",
        ("tests/train", "tests/dataloaders", "tests/model/test_scvi.py", "tests/model/test_scanvi.py"),
        (
            *("anndata<0.13", "docrep", "flax", "jax<0.7", "jaxlib<0.7", "ml-collections", "mudata", "numba"),
            *("numpy<2.3", "numpyro", "optax", "pandas<3", "pyro-ppl", "rich", "scikit-learn<1.7", "scipy", "sparse"),
            *("tensorboard", "tqdm", "xarray"),
        ),
    ),
)

VARIANTS = ("stock", "shim")
PROGRAM = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"


def prepare_library(library: Library) -> tuple[Path, Path]:
    """The library's folder and the Python of its environment, made once.

    Raises:
        subprocess.CalledProcessError: something could not be installed.
    """
    home = _releases.cache_dir() / "dependents" / f"{library.name}-{library.version}"
    python = home / "venv" / "bin" / "python"
    source = home / "source" / f"{library.name.replace('-', '_')}-{library.version}"
    recipe = " ".join([*library.needs, str(_environment.VENV)])
    if (home / "ready").exists() and (home / "ready").read_text() == recipe:
        return source, python
    home.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], cwd=home, check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    shared = subprocess.run(
        [_environment.VENV / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (site / "torch_of_the_tests.pth").write_text(shared + "\n")
    constraints = home / "constraints.txt"
    constraints.write_text(f"{_environment.TORCH}\ntorchmetrics<1.9\n")
    subprocess.run([*pip, "install", "--constraint", str(constraints), *library.needs], cwd=home, check=True)
    fetched = [*pip, "download", "--no-deps", "--no-binary=:all:", "--dest", str(home)]
    subprocess.run([*fetched, f"{library.name}=={library.version}"], cwd=home, check=True)
    (archive,) = home.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(home / "source", filter="data")
    metadata = site / f"{source.name}.dist-info"  # some ask for their own version
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_bytes((source / "PKG-INFO").read_bytes())
    (home / "ready").write_text(recipe)
    return source, python


def run_library(library: Library, release: str, timeout: float) -> list[dict[str, str]]:
    """Return the outcome of each test on stock and with the patches.

    Both run at the same time, each in a copy of the library's folder. A test that ends its process is missing.
    """
    until = time.monotonic() + timeout
    started: list[subprocess.Popen[bytes]] = []
    results = []
    with tempfile.TemporaryDirectory(prefix="dependents-") as directory:
        try:
            for shim in (False, True):
                results.append(_releases.cache_dir() / "dependents" / f"{library.name}-{release}-{VARIANTS[shim]}.xml")
                results[-1].unlink(missing_ok=True)
                started.append(start_library(library, release, shim, Path(directory, VARIANTS[shim]), results[-1]))
            for process in started:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(until - time.monotonic(), 0))
        finally:
            for process in started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                process.wait()
    return [_read(path) if path.exists() else {} for path in results]


def start_library(
    library: Library, release: str, shim: bool, directory: Path, results: Path
) -> subprocess.Popen[bytes]:
    """Start one variant in a new directory. pytest writes a JUnit file, and a log beside it."""
    folder, python = prepare_library(library)
    source = Path(shutil.copytree(folder, directory / folder.name, symlinks=True))
    # The entry points that Lightning calls are found beside torch, in either variant.
    entry_points = ROOT / "lightning_patches" / "activation" / "entry_points"
    paths = [_releases.unpacked(library.distribution, release), source, source / "src", entry_points]
    variables = {name: value for name, value in os.environ.items() if "LIGHTNING_PATCHES" not in name}
    variables.update(
        PYTHONPATH=os.pathsep.join(map(str, [*paths, *([ROOT] if shim else [])])),
        OMP_NUM_THREADS="1",
        CUDA_VISIBLE_DEVICES="",
        MPLBACKEND="agg",
    )
    arguments = ["-q", "--tb=no", "--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:randomly"]
    arguments += [f"--junitxml={results}", "--timeout=300", "-o", "addopts="]
    arguments += ["-p", "lightning_patches"] if shim else []
    arguments += [*library.tests, *(["-k", library.select] if library.select else [])]
    with open(results.with_suffix(".log"), "wb") as log:
        return subprocess.Popen(
            [str(python), "-c", PROGRAM, *arguments],
            cwd=source,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def compare_library(library: Library, release: str, timeout: float = 1800) -> dict[str, Any]:
    """Return the differences for a library on a release.

    Args:
        library: its environment is made in the tests' cache, and shares torch with that of ``scripts/test``.
        release: of Lightning.
        timeout: seconds for each variant.
    """
    stock, shim = run_library(library, release, timeout)
    differing = sorted(test for test in {*stock, *shim} if stock.get(test) != shim.get(test))
    if differing:
        # The whole selection once more: a test may depend on those before it.
        again = run_library(library, release, timeout)
        differing = [
            test for test in differing if again[0].get(test) == stock.get(test) and again[1].get(test) == shim.get(test)
        ]
    counts = Counter(stock.values())
    return {
        "library": f"{library.name} {library.version}",
        "release": f"{library.distribution} {release}",
        "tests": len(stock),
        "passed_on_stock": counts["passed"],
        "failed_on_stock": counts["failed"],
        "skipped": counts["skipped"],
        "regressions": [test for test in differing if stock.get(test) == "passed"],
        "fixed": [test for test in differing if shim.get(test) == "passed"],
    }
