"""On Windows, on macOS and in a Python that was built against an older glibc.

Tests run on this system, without the features that the others lack (``tests/support/other_systems.py``).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.other_systems import SYSTEMS, WINDOWS
from tests.support.run import check, python
from tests.support.variants import ROOT, Variant, environment_of
from tests.unit.fakes import write_lightning

RELEASES = (Variant("lightning", "2.6.6"), Variant("pytorch-lightning", "2.2.5"))
LOG = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
EVERY_MODULE = """
def every_module():
    import importlib, pkgutil, lightning_patches
    for module in pkgutil.walk_packages(lightning_patches.__path__, "lightning_patches."):
        if not module.name.endswith(("__main__", "sitecustomize", "entry_points")):
            importlib.import_module(module.name)
"""
FIT = """
import sys
from tests.support import other_systems
other_systems.become(sys.argv[1], "torch", "torchmetrics", "fsspec", "aiohttp")
import lightning_patches
import importlib, os
import torch
L = importlib.import_module({namespace!r})

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).sum()
        self.log("loss", loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    torch.manual_seed(1)
    os.chdir(sys.argv[2])
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)  # rich needs a real system
    trainer = L.Trainer(max_epochs=2, accelerator="cpu", **quiet)
    model = Model()
    trainer.fit(model, torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2))
    again = type(model).load_from_checkpoint(trainer.checkpoint_callback.best_model_path)
    assert torch.equal(again.layer.weight, model.layer.weight)
    applied = sorted(entry.patch for entry in lightning_patches.report() if entry.verdict == "applied")
    print("weights", model.layer.weight.tolist(), "applied", applied)
"""
COMMANDS = [
    ["status"], ["status", "--all", "--json"], ["list"], ["show", "19813"], ["report"], ["diagnose", "log.txt"],
    ["diagnose", "it", "is stuck at the start"], ["audit", "--requirement", "lightning==2.2.5"],
    ["autostart", "status"], ["run", "--help"],
]  # fmt: skip
COMMAND = """
import sys
from tests.support import other_systems
other_systems.become(sys.argv[1])
import json, os
from lightning_patches.cli import main
for command in json.loads(sys.argv[2]):
    print("$", *command, flush=True)
    print("status", main(command), flush=True)
"""


def run(code: str, *arguments: str, variables: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=variables, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_can_be_imported(system: str) -> None:
    check(f"from tests.support import other_systems; other_systems.become({system!r})\n{EVERY_MODULE}\nevery_module()")


def test_package_works_without_each_single_posix_function(tmp_path: Path) -> None:
    """Every module is imported, and a Lightning patched, in a process forked for each."""
    write_lightning(tmp_path)
    program = f"""
import os, sys, traceback
from tests.support import other_systems
from tests.unit import fakes
{EVERY_MODULE}
other_systems.become("")  # the standard library, which needs some of them when it is imported
fork, wait, status_of = os.fork, os.waitpid, os.waitstatus_to_exitcode
missing = []
for name in {sorted(set(WINDOWS))!r}:
    pid = fork()
    if pid == 0:
        try:
            other_systems.take_away([name])
            fakes.use_catalogue(fakes.toy())
            os.environ["LIGHTNING_PATCHES_HANG_TIMEOUT"] = "300:abort"
            import lightning_patches
            lightning_patches.activate()
            from lightning.pytorch.subject import compute
            assert compute(1) == 20, compute(1)
            every_module()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    missing += [name] * (status_of(wait(pid, 0)[1]) != 0)
print(missing)
"""
    result = python(program, tmp_path, timeout=500)  # 20 to 30 s of CPU time
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("variant", RELEASES, ids=str)
def test_fit_is_the_same_on_every_system(variant: Variant, tmp_path: Path) -> None:
    variables = {**environment_of(variant), "LIGHTNING_PATCHES_HANG_TIMEOUT": "300"}
    code = FIT.format(namespace={"lightning": "lightning.pytorch"}.get(variant.distribution, "pytorch_lightning"))
    here = run(code, "", str(tmp_path), variables=variables, cwd=ROOT)
    assert here.returncode == 0 and "weights" in here.stdout, here.stderr
    for system in SYSTEMS if variant is RELEASES[0] else ["windows"]:
        there = run(code, system, str(tmp_path), variables=variables, cwd=ROOT)
        assert (there.returncode, there.stdout) == (0, here.stdout), (system, there.stdout, there.stderr)
        messages = there.stderr.count("lightning_patches: the hang watch runs on Linux, and this system lacks /proc")
        assert messages == (0 if system == "old glibc" else 1), there.stderr


@pytest.mark.slow
def test_commands_print_the_same_on_every_system(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG)
    variables = environment_of(Variant("lightning", "2.3.3"))
    here = run(COMMAND, "", json.dumps(COMMANDS), variables=variables, cwd=tmp_path)
    assert here.stdout.count("\nstatus ") == len(COMMANDS), here.stderr
    for system in SYSTEMS:
        there = run(COMMAND, system, json.dumps(COMMANDS), variables=variables, cwd=tmp_path)
        printed = re.sub(r"^system: \w+", "system: Linux", there.stdout, flags=re.MULTILINE)
        assert (printed, there.stderr) == (here.stdout, here.stderr), there.stderr


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_doctor_does_not_report_features_that_the_system_never_has(system: str, tmp_path: Path) -> None:
    variables = environment_of(Variant("lightning", "2.3.3"))
    there = run(COMMAND, system, json.dumps([["doctor", "--json"]]), variables=variables, cwd=tmp_path)
    assert there.stdout.rstrip().endswith(("status 0", "status 1")), there.stderr
    assert "/dev/shm" not in there.stdout or system == "old glibc", there.stdout


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_hang_show_names_the_missing_feature(system: str, tmp_path: Path) -> None:
    there = run(COMMAND, system, json.dumps([["hang", "show"]]), variables=environment_of(RELEASES[0]), cwd=tmp_path)
    assert "status 2" in there.stdout
    assert "the hang watch runs on Linux, and this system lacks /proc/self/stat" in there.stderr
    assert "Traceback" not in there.stderr


@pytest.mark.parametrize("system", SYSTEMS)
def test_unsupported_watch_never_ends_a_program(system: str) -> None:
    """A rank is watched by the variable and by a call. One message says that it can't be watched."""
    program = f"""
import os, time
from tests.support import other_systems
other_systems.become({system!r})
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
os.environ["LIGHTNING_PATCHES_HANG_TIMEOUT"] = "0.3:abort"
import lightning_patches
from lightning_patches.ranks import hang
hang.start_from_environment()
watch = lightning_patches.watch_hangs(0.3)
time.sleep(1)
watch.stop()
"""
    result = python(program)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("ranks are not watched") == (0 if system == "old glibc" else 1), result.stderr


def test_failed_start_of_the_watch_is_reported() -> None:
    program = """
import os, threading
os.environ["LIGHTNING_PATCHES_HANG_TIMEOUT"] = "300"
from lightning_patches.ranks import hang
def start(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
hang.start_from_environment()
print("goes on")
"""
    result = python(program)
    assert result.stdout == "goes on\n", result.stderr
    assert "ranks are not watched for hangs: RuntimeError: can't start new thread" in result.stderr


@pytest.mark.parametrize("system", ["", "old glibc"])
def test_process_writes_its_stack_for_others(system: str) -> None:
    """The stack is in a file in memory or, without ``memfd_create``, in one without a name."""
    program = f"""
import os, sys, threading, time
from tests.support import other_systems
other_systems.become({system!r})
from lightning_patches.ranks import _processes
dump = _processes.Dump()
assert dump.signal
pid = os.fork()
if pid == 0:
    def here_it_stands():
        time.sleep(60)
    here_it_stands()
time.sleep(0.5)
print(_processes.stack_from_outside(pid, _processes.start_time(pid), pid, dump.signal, dump.file))
os.kill(pid, 9)
os.waitpid(pid, 0)
"""
    assert "in here_it_stands" in check(program)


def test_run_works_without_file_owners() -> None:
    program = """
from tests.support import other_systems
other_systems.become("windows")
from lightning_patches.cli import run
print(repr(run.why_unsafe(run.LAUNCHER)))
"""
    assert check(program) == "''"


@pytest.mark.skipif(os.name != "posix", reason="asks for a file that only some systems have")
def test_missing_feature_is_named() -> None:
    from lightning_patches import system

    assert system.lacks(("os.getpid", "os.no_such_call", "no_such_module.x")) == "os.no_such_call"
    assert system.lacks(("no_such_module.x",)) == "no_such_module.x"
    assert system.lacks(("os.getpid", str(Path(__file__)))) == ""
