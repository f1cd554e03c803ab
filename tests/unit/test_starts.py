"""Starts of Python with a stand-in for Lightning and threads in the way: no hang, no half-patched module.

Each start is a process that is activated in one of three ways: by the import, when Python starts, or late. Its threads
import what the patches need, and Lightning's modules in any order and both namespaces; they activate, deactivate,
report and pickle at random times. At the end every imported module must be patched or unpatched, as the last call
requested, and the report must agree. To run more starts, set ``LIGHTNING_PATCHES_TEST_STARTS``, for example to 60.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.support import pythons
from tests.support.run import variables
from tests.unit.fakes import write_lightning

WAYS = ("import", "site", "late")
NEEDED = ("wrapt", "importlib.metadata", "packaging.version", "wrapt", "json")
OTHERS = ("logging.config", "concurrent.futures", "csv", "sqlite3", "xml.dom.minidom", "unittest.mock")
LIMIT = 60
"""Seconds after which a start counts as hung; it takes a fraction of one."""

SITE = """
import sys
from importlib.machinery import ModuleSpec  # not below: a finder that imports may wait for ever
class Toys:  # makes two toy patches the catalogue, when that is imported
    def find_spec(self, name, path=None, target=None):
        if name == "lightning_patches.patches":
            return ModuleSpec(name, self)
    def create_module(self, spec): return None
    def exec_module(self, module):
        from tests.unit.fakes import toy, use_catalogue, METHOD
        module.all_patches = None
        use_catalogue(toy("pytorch.subject:compute", METHOD), toy("fabric.subject:compute", name="second"))
sys.meta_path.insert(0, Toys())
"""

PROGRAM = """
import faulthandler, importlib, os, pickle, random, sys, threading, time
sys.setswitchinterval(random.Random(int(os.environ["SEED"])).choice([1e-5, 1e-4, 5e-3]))
faulthandler.dump_traceback_later(int(os.environ["LIMIT"]), exit=True)
seed, way, modules = int(os.environ["SEED"]), os.environ["WAY"], os.environ["MODULES"].split()
chance, problems = random.Random(seed), []
SUBJECTS = [f"{name}.{what}" for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning",
    "lightning_fabric") for what in ("subject", "importer")]
if way == "import":
    import lightning_patches

def load(name):
    importlib.import_module(name)

def pickled():
    subject = sys.modules.get("lightning.pytorch.subject")
    function = getattr(subject, "compute", None)
    if function is not None:
        try:
            pickle.loads(pickle.dumps(function))
        except pickle.PicklingError:
            pass  # it was swapped in between

def call(name):
    import lightning_patches
    getattr(lightning_patches, name)()

def work(jobs, delays):
    start.wait()
    for (job, argument), delay in zip(jobs, delays):
        time.sleep(delay)
        try:
            job(*argument)
        except BaseException as error:
            problems.append(f"{job.__name__}{argument}: {error!r}")

kinds = [(load, (name,)) for name in modules] + [(load, (name,)) for name in SUBJECTS] * 2
kinds += [(pickled, ()), (call, ("report",)), (call, ("report",))]
if chance.random() < 0.7:
    kinds += [(call, ("activate",)), (call, ("deactivate",)), (call, ("activate",))]
threads, count = [], chance.randrange(2, 7)
start = threading.Barrier(count + 1)
for number in range(count):
    jobs = [chance.choice(kinds) for _ in range(chance.randrange(1, 7))]
    delays = [chance.random() * chance.choice([0, 0.002, 0.02]) for _ in jobs]
    if number == 0:  # what the activation needs, about when it does
        jobs[0], delays[0] = (load, (modules[0],)), 0
    threads.append(threading.Thread(target=work, args=(jobs, delays), daemon=True))
for thread in threads:
    thread.start()
start.wait()
time.sleep(chance.random() * 0.01)
if way == "late":
    load("lightning.pytorch")
    time.sleep(chance.random() * 0.02)
    import lightning_patches
load("lightning.pytorch.importer")
for thread in threads:
    thread.join()

import lightning_patches
def check(active):
    for entry in lightning_patches.report():
        part = "fabric" if entry.patch == "second" else "pytorch"
        packages = {"lightning": "lightning.", "pytorch_lightning": ("lightning_" if part == "fabric" else "pytorch_")}
        package = packages[entry.namespace] + {"lightning": part, "pytorch_lightning": "lightning" if part == "pytorch"
            else "fabric"}[entry.namespace]
        subject, importer = sys.modules.get(package + ".subject"), sys.modules.get(package + ".importer")
        values = [module.compute(3) for module in (subject, importer) if module is not None]
        if part == "pytorch" and subject is not None:
            values.append(60 if len(subject.Base().method(1)) == 60 else 6)
        expected = 60 if active else 6
        if set(values) - {expected}:
            problems.append(f"{package}: {values} where {expected} is right; {entry.verdict}: {entry.reason}")
        verdict = ("applied" if subject is not None else "pending") if active else "disabled"
        if entry.verdict != verdict:
            problems.append(f"{package}: {entry.verdict} ({entry.reason}) where {verdict} is right, {values}")

lightning_patches.report()
from lightning_patches.activation import startup
check(startup._patcher is not None and startup._patcher.active)
lightning_patches.activate(); check(True)
left = lightning_patches.deactivate()
if left: problems.append(f"left: {left}")
check(False)
print("; ".join(problems) or "well", flush=True)
os._exit(0)
"""


def start(python: str, directory: Path, way: str, seed: int) -> str:
    """Start Python once. Return ``"well"``, ``"hung"``, or a description of the failure."""
    modules = [NEEDED[seed % len(NEEDED)], *random.Random(seed).sample(OTHERS, 2)]
    environment = variables(
        *(directory / way, directory), LIGHTNING_PATCHES="1,quiet", SEED=str(seed), WAY=way, LIMIT=str(LIMIT),
        MODULES=" ".join(modules),
    )  # fmt: skip
    command = [python, "-c", PROGRAM]
    try:
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=2 * LIMIT)
    except subprocess.TimeoutExpired:
        return "hung"
    if "Timeout (" in done.stderr:
        return "hung: " + done.stderr[-3000:]
    output = done.stdout.strip()
    return "well" if output == "well" and done.stderr == "" else f"{output or 'ended'}: {done.stderr[-1500:]}"


@pytest.mark.slow
def test_concurrent_starts_never_hang(tmp_path: Path) -> None:
    for namespace in ("lightning", "pytorch_lightning"):
        write_lightning(tmp_path, namespace=namespace)
    for way in WAYS:
        (tmp_path / way).mkdir()
        more = "import lightning_patches\n" if way == "site" else ""
        (tmp_path / way / "sitecustomize.py").write_text(SITE + more)
    outcomes = {
        (python, WAYS[seed % 3], seed): start(python, tmp_path, WAYS[seed % 3], seed)
        for python in pythons.with_dependencies()
        for seed in range(int(os.environ.get("LIGHTNING_PATCHES_TEST_STARTS", len(WAYS))))
    }
    assert set(outcomes.values()) == {"well"}, {key: value for key, value in outcomes.items() if value != "well"}
