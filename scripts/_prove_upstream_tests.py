"""Run all of upstream's own tests that run on a CPU, stock and with the shim, and record what the shim changes.

    scripts/prove upstream_tests REPOSITORY                             # the last release of each minor (many hours)
    scripts/prove upstream_tests REPOSITORY --tags 2.2.5 --minutes 15   # a slice; the next call goes on
    scripts/prove upstream_tests REPOSITORY --tags 2.2.5 --patch lr-finder-applies-lr   # files that touch its targets
    scripts/prove upstream_tests REPOSITORY --record                    # write the record from the results

REPOSITORY is a clone of Lightning's repository with its tags, bare or not. The tests are those of the tag, in a
temporary directory; what they test is the release's wheel. Every test file runs twice, in the same environment: stock,
and with the shim imported first. A test whose outcomes differ runs again, alone, in both arms (twice in each if it
passed on stock): one that passes on stock only is a regression, one that passes with the shim only is improved, one
that does not do the same each time is flaky.

A regression is explained where the test encodes the bug: upstream changed that very test with the fix. Such tests are
named, each with the pull request, in upstream/upstream_tests.explained, and the repository's history must bear it out.
Every other regression is a defect of ours. Exit status 1 if there is one, 3 if there was no time to finish.

The results stay in --results, by tag and arm. A test that is there does not run again, but the shim's part of a file in
which a test differs does if lightning_patches has changed since; --renew runs all of the shim's part again.

Upstream's tests need more packages than ours do. Keep them in an environment of their own, and let none move torch:

    python -m venv VENV
    VENV/bin/pip install torch==2.13.0
    VENV/bin/pip install $(scripts/prove upstream_tests --needs)
    scripts/prove upstream_tests REPOSITORY --python VENV/bin/python

Left out, and counted by reason in the record: what upstream's tests skip by themselves (GPUs, TPUs, packages that are
not installed), and what fails on stock as well, such as tests that download a data set.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import _releases
import _upstream_results as results
from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.equivalence import evidence
from tests.support.arms import ROOT

TAGS = ("2.0.9", "2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.6", "2.6.5")
SUITES = ("tests/tests_pytorch", "tests/tests_fabric")
NEEDS = (
    *("pytest>=8.4,<9", "pytest-timeout", "pytest-rerunfailures", "pytest-random-order"),
    *("cloudpickle", "scikit-learn", "onnx", "onnxruntime", "onnxscript", "pandas", "fastapi", "uvicorn", "psutil"),
    *("tensorboard", "tensorboardX", "click", "jsonargparse[signatures]", "omegaconf", "hydra-core", "matplotlib"),
    *("lightning-utilities", "torchmetrics<1.10", "fsspec[http]", "PyYAML", "rich", "tqdm", "requests", "numpy"),
    *("setuptools<81", "typing-extensions", "packaging", "wrapt"),
)
# What a newer torch or setuptools warns of is no matter of the release; some of upstream's tests count warnings.
FILTERS = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:pkg_resources")
EXPLAINED = ROOT / "upstream" / "upstream_tests.explained"
STANDALONE = "Requires: [Standalone execution]"
"""Why a test that upstream runs by itself is skipped in company."""


class OutOfTimeError(Exception):
    """No time is left to begin anything more."""


class Upstream:
    """A clone of upstream's repository, bare or not.

    Raises:
        SystemExit: it is no git repository.
    """

    def __init__(self, path: Path) -> None:
        self._git = ["git", "-C", str(path)]
        if not path.is_dir() or subprocess.run([*self._git, "rev-parse"], capture_output=True).returncode:
            sys.exit(f"upstream_tests: {path} is no git repository")

    def read(self, *command: str) -> str:
        """What a git command prints; "" if it fails, as it does where there is no such file."""
        return subprocess.run([*self._git, *command], capture_output=True, text=True, errors="replace").stdout

    def has(self, tag: str) -> bool:
        return bool(self.read("rev-parse", "--verify", "--quiet", f"refs/tags/{tag}"))

    def files(self, tag: str) -> list[str]:
        names = self.read("ls-tree", "-r", "--name-only", tag, *SUITES).splitlines()
        return [name for name in names if re.search(r"/test_[^/]*\.py$", name)]

    def unpack(self, commit: str, paths: tuple[str, ...], directory: Path) -> None:
        """Put these files and folders of a commit into a directory."""
        archive = subprocess.run([*self._git, "archive", commit, *paths], capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(directory, filter="data")

    def extract(self, tag: str, directory: Path, distribution: str) -> None:
        """Put the tag's tests and pytest's configuration into a directory, as upstream's CI does for a distribution."""
        self.unpack(tag, ("tests", "pyproject.toml"), directory)
        if distribution != "lightning":
            for path in directory.rglob("*.py"):
                text = path.read_text(encoding="utf-8")
                path.write_text(re.sub(r"\blightning\.(pytorch|fabric)\b", in_own_package, text), encoding="utf-8")


def in_own_package(found: re.Match[str]) -> str:
    return {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"}[found[1]]


class Arm:
    """A process that has imported the release, in the shim arm the shim before it, and forks one for each request."""

    def __init__(self, campaign: "Campaign", shim: bool, toggle: str = "default") -> None:
        self.name = "shim" if shim else "stock"
        self._campaign = campaign
        unwanted = ("_LIGHTNING_PATCHES_IMPORT_ONLY", "LIGHTNING_PATCHES", "PL_RUN_STANDALONE_TESTS")
        variables = {name: value for name, value in os.environ.items() if name not in unwanted}
        path = [campaign.source, campaign.directory / "tests", *([campaign.package] if shim else [])]
        variables.update(
            PYTHONPATH=os.pathsep.join(map(str, path)),
            UPSTREAM_TESTS_PRELOAD=" ".join(campaign.packages),
            OMP_NUM_THREADS="1",
            TMPDIR=str(campaign.directory),
            # A newer torch sets it when it is imported, which upstream takes for a leak of the first test.
            TORCHINDUCTOR_CACHE_DIR=str(campaign.directory / "inductor"),
        )
        if shim:
            variables.update(UPSTREAM_TESTS_SHIM="1", LIGHTNING_PATCHES=toggle)
        with open(campaign.results / f"{self.name}.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(campaign.options.python), str(ROOT / "scripts" / "_upstream_worker.py")],
                cwd=campaign.directory,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        list(self._answers())

    def run(self, file: str, done: list[str], only: list[str] | None, standalone: bool = False) -> Iterator[dict]:
        """Outcomes of a file's tests, of those that are not ``done``, or of ``only`` these, as they come."""
        suite = next(name for name in SUITES if file.startswith(f"{name}/"))
        arguments = ["--rootdir", str(self._campaign.directory), "-c", str(self._campaign.directory / "pyproject.toml")]
        arguments += ["-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", "--import-mode=prepend"]
        arguments += [option for text in FILTERS for option in ("-W", text)]
        request = {
            "arguments": [*arguments, os.path.relpath(file, suite)],
            "cwd": str(self._campaign.directory / suite),
            "log": str(self._campaign.results / f"{self.name}.log"),
            "limit": self._campaign.options.limit,
            "done": done,
            "only": only,
            "variables": {"PL_RUN_STANDALONE_TESTS": "1"} if standalone else {},
        }
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._answers()

    def _answers(self) -> Iterator[dict]:
        for line in self._process.stdout:
            item = json.loads(line)
            yield item
            if "ended" in item:
                return
        log = self._campaign.results / f"{self.name}.log"
        sys.exit(f"upstream_tests: the {self.name} arm broke off; the end of {log}:\n{log.read_text()[-3000:]}")

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


class Campaign:
    """The tests of one tag."""

    def __init__(self, upstream: Upstream, tag: str, options: argparse.Namespace, directory: Path, ends: float) -> None:
        self.upstream, self.tag, self.options, self.directory, self._ends = upstream, tag, options, directory, ends
        # lightning 2.0 imports the whole App and its dependencies; upstream tests both distributions in this way.
        distribution = "pytorch-lightning" if Version(tag) < Version("2.1") else "lightning"
        self.packages = (
            ("pytorch_lightning", "lightning_fabric")
            if distribution != "lightning"
            else ("lightning.pytorch", "lightning.fabric")
        )
        self.source = options.source or _releases.unpacked(distribution, tag)
        self.results = options.results / tag
        self.results.mkdir(parents=True, exist_ok=True)
        self.store = results.Store(self.results)
        self.code = evidence.package()
        upstream.extract(tag, directory, distribution)
        self.package = directory / "shim"  # ours and no more: beside it may lie metadata of an installation
        for package in ("lightning_patches", "lightning_patches/activation/canary/_lightning_patches"):
            link = self.package / Path(package).name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(ROOT / package)
        self._arms: dict[tuple[bool, str], Arm] = {}

    def arm(self, name: str, toggle: str = "default") -> Arm:
        """The arm's process. Those of other toggles are needed only once."""
        key = (name == "shim", toggle)
        if key not in self._arms:
            self._arms[key] = Arm(self, *key)
        return self._arms[key]

    def end(self) -> None:
        for arm in self._arms.values():
            arm.end()

    def check_time(self) -> None:
        if time.monotonic() > self._ends:
            raise OutOfTimeError

    def go(self, files: list[str]) -> None:
        """File by file, run what is not in the results yet, and look closer at what differs."""
        for number, file in enumerate(files, 1):
            for arm in self.options.arms:
                renew = arm == "shim" and self.options.renew and self.store.code(arm, file) != self.code
                if renew or not self.store.complete(arm, file):
                    self.whole_file(arm, file, "file", f"{number}/{len(files)}")
                self.standalone(arm, file, renew)
            if self.store.differing(file):
                self.look_closer(file)

    def standalone(self, arm: str, file: str, renew: bool) -> None:
        """Run those tests of a file that upstream only ever runs by themselves."""
        known = self.store.outcomes(arm, "standalone")
        for test in self.store.standalone(file, STANDALONE):
            if test not in known or (renew and known[test]["code"] != self.code):
                print(f"{self.tag} standalone {arm} {test}: {self.alone(arm, test, 'standalone')}", flush=True)

    def whole_file(self, arm: str, file: str, kind: str, progress: str = "again") -> None:
        self.check_time()
        began, outcomes = time.monotonic(), []
        self.store.begin(arm, file, kind)
        done: list[str] = []
        while True:
            for item in self.arm(arm).run(file, done, None):
                if "ended" not in item:
                    outcomes.append(item["outcome"])
                    done.append(item["test"])
                    self.store.add(arm, item, kind, self.code)
            if not item["running"]:
                break  # else one test took its process with it: go on with those after it
        if item["ended"] == "timeout" or item["ended"].startswith("killed"):
            self.store.add(
                arm, {"test": file, "outcome": "timeout", "seconds": 0, "why": item["ended"]}, kind, self.code
            )
        self.store.finish(arm, file, kind, self.code)
        counts = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(sorted(outcomes)))
        seconds = time.monotonic() - began
        print(f"{self.tag} {progress} {arm} {file}: {counts or 'no tests'}, {seconds:.0f} s", flush=True)

    def alone(self, arm: str, test: str, kind: str, toggle: str = "default") -> str:
        """Outcome of one test, without those before it."""
        self.check_time()
        found = {"test": test, "outcome": "absent", "seconds": 0.0, "why": ""}
        standalone = kind == "standalone" or test in self.store.outcomes("stock", "standalone")
        for item in self.arm(arm, toggle).run(test.partition("::")[0], [], [test], standalone):
            if item.get("test") == test:
                found = item
        if kind != "bisect":
            self.store.add(arm, found, kind, self.code)
        return found["outcome"]

    def look_closer(self, file: str) -> None:
        """Run what differs again: alone and twice in each arm, and where that shows nothing, the whole file."""
        if self.store.code("shim", file) != self.code:
            self.whole_file("shim", file, "file")
        self.standalone("shim", file, renew=True)
        for test in self.store.differing(file):
            for arm in results.ARMS:
                for _ in range(self.store.lacking(arm, test, self.code)):
                    self.alone(arm, test, "alone")
        if any(self.store.verdict(test, self.code) == "company" for test in self.store.differing(file)):
            for arm in results.ARMS:
                self.whole_file(arm, file, "file again")
        for test in self.store.differing(file):
            verdict = self.store.verdict(test, self.code)
            print(f"{self.tag} {test}: {verdict}", flush=True)
            if self.options.bisect and verdict == "regression" and not self.store.blamed(test, self.code):
                self.blame(test)

    def blame(self, test: str) -> None:
        """Find the patch: one that another test was put down to and without which this one passes as well, or else the
        first in the catalogue's order with which, and with those before it, the test fails.
        """
        names = [p.name for p in catalogue.all_patches() if p.default and self.tag in gate.affected_releases(p)]

        def fails(toggle: str) -> bool:
            return self.alone("shim", test, "bisect", toggle) not in results.PASSED

        def fails_with(count: int) -> bool:
            failed = fails(",".join(names[:count]) or "none")
            self._arms.pop((True, ",".join(names[:count]) or "none")).end()
            return failed

        known = (name for name in self.store.culprits() if name in names and not fails(f"default,-{name}"))
        by_itself = all(outcome in results.PASSED for outcome in self.store.again("stock", test, self.code))
        found = next(known, "") if by_itself and fails("default") else "only after other tests"
        if not found and fails_with(0):
            found = "the shim itself"
        elif not found:
            low, high = 0, len(names)  # passes with the first `low` of them, fails with the first `high`
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if fails_with(middle) else (middle, high)
            found = names[high - 1]
        print(f"{self.tag} {test}: {found}", flush=True)
        self.store.put_down(test, found, self.code)


def touching(upstream: Upstream, tag: str, names: list[str]) -> list[str]:
    """The test files that the patches' records name, and those that mention a module of a target."""
    patches = [patch for patch in catalogue.all_patches() if patch.name in names]
    if len(patches) < len(set(names)):
        sys.exit(f"upstream_tests: no such patch: {', '.join(set(names) - {patch.name for patch in patches})}")
    named = {test.partition("::")[0] for patch in patches for test in patch.upstream.tests}
    modules = {f"lightning.{target.module}" for patch in patches for target in patch.targets}
    pattern = "|".join(re.escape(module) + r"\b" for module in modules)
    found = upstream.read("grep", "-lP", pattern, tag, "--", *SUITES).splitlines()
    return [name for name in upstream.files(tag) if name in named or f"{tag}:{name}" in found]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", type=Path, nargs="?", help="a clone of Lightning's repository, with its tags")
    parser.add_argument("--tags", default=",".join(TAGS), metavar="TAG,...", help=f"default {','.join(TAGS)}")
    parser.add_argument("--files", default="", metavar="REGEX", help="only test files whose path matches")
    parser.add_argument("--patch", action="append", default=[], help="only files that touch it; may be repeated")
    parser.add_argument("--arms", default="stock,shim", help="run only one of the two (default stock,shim)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing more after so many")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one test (default 120)")
    parser.add_argument(
        "--renew", action="store_true", help="run what another state of lightning_patches has run again"
    )
    parser.add_argument("--bisect", action="store_true", help="find the patch behind each regression")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the environment for the tests")
    parser.add_argument("--source", type=Path, help="test the packages in this directory, not the release's wheel")
    parser.add_argument("--results", type=Path, help="directory; default upstream_tests in the cache of releases")
    parser.add_argument("--list", action="store_true", help="name the test files and run nothing")
    parser.add_argument("--record", action="store_true", help="run nothing, write the record from the results")
    parser.add_argument("--explained", type=Path, default=EXPLAINED, help="default upstream/upstream_tests.explained")
    parser.add_argument("--output", type=Path, default=evidence.DIRECTORY, help="directory of the record")
    parser.add_argument("--needs", action="store_true", help="print what to install besides torch")


def run(options: argparse.Namespace) -> int:
    if options.needs:
        print(" ".join(NEEDS))
        return 0
    if options.repository is None:
        sys.exit("prove upstream_tests: REPOSITORY is missing")
    upstream = Upstream(options.repository)
    options.arms = options.arms.split(",")
    options.results = (options.results or _releases.cache_dir() / "upstream_tests").resolve()
    tags = options.tags.split(",")
    for tag in tags:
        if not upstream.has(tag):
            sys.exit(f"upstream_tests: {options.repository} has no tag {tag}")
    if options.record:
        return record(upstream, tags, options)
    ends = time.monotonic() + 60 * options.minutes
    left, found = False, []
    for tag in tags:
        files = touching(upstream, tag, options.patch) if options.patch else upstream.files(tag)
        files = [file for file in files if re.search(options.files, file)]
        if not files:
            sys.exit(f"upstream_tests: no such test file at {tag}")
        if options.list:
            print("\n".join(files))
            continue
        with tempfile.TemporaryDirectory(prefix="upstream-tests-") as directory:
            campaign = Campaign(upstream, tag, options, Path(directory).resolve(), ends)
            try:
                campaign.go(files)
            except OutOfTimeError:
                left = True
            finally:
                campaign.end()
        found.append(
            results.summary(tag, campaign.store, files, campaign.code, explain(upstream, tag, options.explained))
        )
        print(results.brief(found[-1]), flush=True)
    defects = any(not item["explained_by"] for tag in found for item in tag["regressions"])
    return 3 if left else 1 if defects else 0


def explain(upstream: Upstream, tag: str, file: Path) -> Callable[[str, str], int]:
    """What :func:`_upstream_results.summary` asks: the pull request that changed a test with the fix of a patch."""
    named = results.read_explained(file)

    def by(test: str, patch: str) -> int:
        for name, number in named:
            fixes = [p for p in catalogue.all_patches() if number in p.upstream.pull_requests and patch in ("", p.name)]
            if name == results.bare(test) and fixes and results.changed_by(upstream.read, test, number, tag):
                return number
        return 0

    return by


def record(upstream: Upstream, tags: list[str], options: argparse.Namespace) -> int:
    """Write the record from the results; those of tags that were not asked for stay as they are."""
    found = []
    for tag in tags:
        if (options.results / tag).is_dir():
            store, explained = results.Store(options.results / tag), explain(upstream, tag, options.explained)
            found.append(results.summary(tag, store, upstream.files(tag), evidence.package(), explained))
            print(results.brief(found[-1]), flush=True)
    asked = "import importlib.metadata as m, platform; print(platform.python_version(), *map(m.version, %r))"
    packages = ("torch", "numpy", "pytest", "torchmetrics")
    command = [str(options.python), "-c", asked % (packages,)]
    versions = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    facts = {"date": evidence.today(), **dict(zip(("Python", *packages), versions)), "package": evidence.package()}
    results.write(options.output, facts, TAGS, found)
    return 1 if any(not item["explained_by"] for tag in found for item in tag["regressions"]) else 0
