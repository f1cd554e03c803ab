"""``lightning-patches doctor``: each check with injected facts, and the command in the real environment."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches import doctor as checks
from lightning_patches.cli import autostart
from lightning_patches.cli.diagnose.advice import WORKAROUNDS
from lightning_patches.doctor import devices, machine, script
from lightning_patches.doctor.facts import Facts, Gpu, Lightning, Missing, Torch, Unknown
from lightning_patches.doctor.machine import gather
from lightning_patches.known.frequent import frequent
from lightning_patches.known.installed import BrokenImport
from lightning_patches.known.unpatched import WITH_PKG_RESOURCES
from lightning_patches.ranks.hang import _files as hang_files
from lightning_patches.ranks.hang._identity import Identity
from tests.support.variants import ROOT

H100, A100 = Gpu(0, "NVIDIA H100", 81559, capability=(9, 0)), Gpu(1, "NVIDIA A100", 40960, capability=(8, 0))
CUDA = Torch("2.6.0", "12.4", "2.21.5", cuda_available=True, devices=2, architectures=("sm_80", "sm_90"))
TORCHRUN = {
    "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
    "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none",
}  # fmt: skip
SLURM = {
    "SLURM_NTASKS": "8", "SLURM_NTASKS_PER_NODE": "4", "SLURM_NNODES": "2", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0",
}  # fmt: skip
FORKING = ((script.TOUCHES_CUDA, 3, "torch.zeros(1).cuda()"), (script.FORKS, 9, "strategy='ddp_fork'"))

UNGUARDED, UNPICKLABLE = (script.UNGUARDED, 7, "DataLoader"), (script.UNPICKLABLE, 8, "collate_fn is a lambda")

FOUND: list[tuple[str, str, dict[str, Any], str]] = [
    ("compromised-release", "error", {"lightnings": (Lightning("lightning", "2.6.3", True),)}, "2.6.3 is installed"),
    ("two-lightnings", "warning", {"lightnings": (Lightning("lightning", "2.2.5"),
     Lightning("pytorch-lightning", "2.6.6"))}, "lightning 2.2.5, pytorch-lightning 2.6.6"),
    ("pkg-resources", "error", {"lightnings": (Lightning("lightning", "2.3.3"),), "has_pkg_resources": False},
     "2.3.3 imports pkg_resources"),
    ("missing-packages", "error", {"missing": (Missing("torchmetrics", "torchmetrics>=0.7.0", "lightning 2.2.5"),)},
     "lightning 2.2.5 requires torchmetrics, which is not installed"),
    ("missing-packages", "warning", {"missing": (Missing("arrow", "arrow<3.0", "lightning 2.0.0"),
     Missing("click", "click", "lightning 2.0.0"))}, "requires arrow, click, which are not installed"),
    ("worker-start", "error", {"script": (UNGUARDED,)}, "without a `__main__` guard, and its DataLoader in line 7"),
    ("worker-start", "error", {"script": (UNPICKLABLE,)}, "line 8 cannot start its workers: collate_fn is a lambda"),
    ("broken-import", "error", {"lightnings": (Lightning("lightning", "2.0.7",
     broken=BrokenImport("it fails", "repair it")),)}, "lightning 2.0.7 cannot be imported"),
    ("torch-unusable", "error", {"unknown": (Unknown("torch", "did not answer within 1 s"),)}, "did not answer"),
    ("pinned-packages", "warning", {"pinned": {"nvidia-nccl-cu12": "2.21.5"},
     "pinned_installed": {"nvidia-nccl-cu12": "2.18.1"}}, "nvidia-nccl-cu12 2.18.1 (torch requires 2.21.5)"),
    ("accelerate-launch", "warning", {"environment": {"ACCELERATE_USE_FSDP": "true"}}, "ACCELERATE_USE_FSDP"),
    ("model-hooks", "note", {"packages": {"accelerate": "1.0", "bitsandbytes": "0.45"}}, "bitsandbytes 0.45 are"),
    ("no-cuda", "error", {"gpus": (H100,), "torch": Torch("2.6.0+cpu")}, "built without CUDA"),
    ("no-cuda", "error", {"gpus": (H100,), "torch": Torch("2.6.0", "12.4",
     cuda_error="Error 804: forward compatibility")}, "Error 804"),
    ("no-cuda", "warning", {"gpus": (H100,), "torch": Torch("2.6.0", "12.4"),
     "environment": {"CUDA_VISIBLE_DEVICES": ""}}, "hides all 1 GPUs"),
    ("driver-too-old", "error", {"torch": CUDA, "driver": "470.57.02"}, "470.57.02 is too old"),
    ("driver-too-old", "note", {"torch": CUDA, "driver": "535.1", "driver_cuda": (12, 2)}, "supports CUDA 12.2"),
    ("unsupported-architecture", "error", {"torch": CUDA, "gpus": (Gpu(0, "NVIDIA B200", capability=(10, 0)),)},
     "no code for GPU 0, NVIDIA B200 (sm_100)"),
    ("mixed-models", "warning", {"gpus": (H100, A100)}, "0: NVIDIA H100 (81559 MiB), 1: NVIDIA A100"),
    ("foreign-nccl", "warning", {"foreign_nccl": ("/opt/lib/libnccl.so.2",)}, "/opt/lib/libnccl.so.2"),
    ("no-peer-access", "note", {"torch": dataclasses.replace(CUDA, no_peer_access=((0, 1),))},
     "cannot reach each other directly: 0-1"),
    ("no-peer-access", "warning", {"gpus": (H100, H100), "iommu": True}, "IOMMU"),
    ("exclusive-mode", "warning", {"gpus": (dataclasses.replace(H100, exclusive=True),)}, "mode Default: 0"),
    ("memory-in-use", "note", {"gpus": (dataclasses.replace(H100, used_mib=9000),)}, "0: 9000 of 81559 MiB"),
    ("cuda-before-fork", "error", {"torch": dataclasses.replace(CUDA, initialized_by_import=True)}, "initializes CUDA"),
    ("cuda-before-fork", "error", {"script": FORKING}, "line 3 (torch.zeros(1).cuda()) and forks in line 9"),
    ("launcher-numbers", "error", {"environment": {**TORCHRUN, "RANK": "2"}}, "RANK=2 with WORLD_SIZE=2"),
    ("launcher-numbers", "error", {"environment": {**TORCHRUN, "WORLD_SIZE": "two"}}, "WORLD_SIZE='two'"),
    ("launcher-numbers", "error", {"environment": {**TORCHRUN, "MASTER_PORT": "99999"}}, "MASTER_PORT='99999'"),
    ("launcher-numbers", "error", {"environment": {**SLURM, "RANK": "3"}}, "RANK=3 with SLURM_PROCID=0"),
    ("leftover-rank", "warning", {"environment": {"LOCAL_RANK": "0"}}, "LOCAL_RANK=0 is set"),
    ("leftover-rank", "warning", {"environment": {"RANK": "0"}}, "RANK=0 is set, and LOCAL_RANK is not"),
    ("leftover-rank", "note", {"environment": {"WORLD_SIZE": "4"}}, "WORLD_SIZE=4 is set"),
    ("slurm", "error", {"environment": {"SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"}}, "no --ntasks-per-node"),
    ("slurm", "warning", {"environment": {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "4"}}, "not started with srun"),
    ("slurm", "error", {"environment": {**SLURM, **TORCHRUN, "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}},
     "srun starts torchrun 4 times"),
    ("master-address", "error", {"environment": {"MASTER_ADDR": "node0"}, "addresses": {"node0": False}},
     "MASTER_ADDR=node0 cannot be resolved"),
    ("master-address", "error", {"environment": {**SLURM, "MASTER_ADDR": "localhost"}}, "the job has 2 nodes"),
    ("master-address", "warning", {"addresses": {"me": False}}, "name of this machine, me,"),
    ("master-port", "error", {"environment": {"MASTER_PORT": "29500"}, "busy_port": True}, "29500 is in use"),
    ("network-interface", "error", {"environment": {"NCCL_SOCKET_IFNAME": "ib0"}, "interfaces": ("eth0", "lo")},
     "this machine has eth0, lo"),
    ("visible-devices", "error", {"environment": {"CUDA_VISIBLE_DEVICES": "0,0,4"}, "gpus": (H100, A100)},
     "GPU 4 does not exist, 0 is listed twice"),
    ("shared-rendezvous", "error", {"environment": {"PET_RDZV_CONF": "store_type=file",
     "PET_RDZV_ENDPOINT": "/home/store"}, "network_paths": {"/home/store": "nfs4"}}, "/home/store, on nfs4"),
    ("shared-rendezvous", "warning", {"script": ((script.FILE_RENDEZVOUS, 4, "file:///home/x"),)}, "file:///home/x"),
    ("patches-import", "note", {"script": ((script.UNPATCHED, 2, "imports Lightning in line 2"),)}, "in line 2"),
    ("silent-failures", "warning", {"environment": {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}}, "HANDLING=0"),
    ("silent-failures", "note", {"environment": {"CUDA_LAUNCH_BLOCKING": "1"}}, "CUDA_LAUNCH_BLOCKING"),
    ("hang-watch", "warning", {"environment": {"LIGHTNING_PATCHES_HANG_TIMEOUT": "30:stop"}}, "30:stop is invalid"),
    ("hang-watch", "warning", {"environment": {"LIGHTNING_PATCHES_HANG_PORT": "99999"}}, "99999 is not a port"),
    ("hang-watch", "warning", {"environment": {"LIGHTNING_PATCHES_HANG_DIR": "/x"}}, "ranks are not watched"),
    ("hang-watch", "warning", {"unwritable": {"LIGHTNING_PATCHES_HANG_DIR": "/x"}},
     "Files can't be created in LIGHTNING_PATCHES_HANG_DIR=/x"),
    ("hang-watch", "warning", {"hang_ports": {"n1:2": "is in use on this machine"}}, "port n1:2 is in use"),
    ("temporary-directory", "warning", {"unwritable": {"TMPDIR": "/x"}, "environment": {"TMPDIR": "/x"}}, "TMPDIR=/x"),
    ("temporary-directory", "note", {"environment": {"TMPDIR": "/tmp/rank_3", "SLURM_LOCALID": "3"}},
     "TMPDIR=/tmp/rank_3 looks like a directory of this rank only"),
    ("home-directory", "warning", {"unwritable": {"HOME": "/root"}}, "HOME=/root"),
    ("shared-memory", "warning", {"shm_bytes": 64 << 20, "shm_free_bytes": 64 << 20}, "/dev/shm has 64 MiB"),
    ("shared-memory", "warning", {"shm_bytes": None}, "there is no /dev/shm"),
    ("shared-memory", "warning", {"shm_bytes": 8 << 30, "shm_free_bytes": 1 << 20}, "nearly full"),
    ("limits", "note", {"open_files": 1024}, "1024 files open"),
    ("limits", "warning", {"infiniband": True, "locked_memory_bytes": 65536}, "64 KiB"),
    ("temporary-directory", "note", {"network_paths": {"/home/tmp": "nfs"}}, "/home/tmp, on nfs"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "severity", "given", "words"), FOUND, ids=lambda value: str(value)[:40])
def test_check_reports_its_finding(check: str, severity: str, given: dict[str, Any], words: str) -> None:
    (finding,) = checks.all_checks()[check](Facts(**given))
    assert (finding.check, finding.severity) == (check, severity)
    assert words in finding.what
    assert finding.why and finding.do


OLD = {"lightnings": (Lightning("lightning", "2.3.3"),), "has_pkg_resources": False}
IMPORTED = ((script.PATCHED, 3, "import lightning_patches"),)


@pytest.mark.parametrize(
    ("given", "spec", "severity", "words"),
    [
        ({"autostart": True}, "1", "note", "autostart is enabled, and LIGHTNING_PATCHES=1"),
        ({"autostart": True}, "-import-without-pkg-resources", "error", ""),
        ({"autostart": True}, "", "error", ""),
        ({"autostart": True}, None, "error", ""),
        ({"autostart": True}, "nonsense", "error", ""),
        ({}, "1", "error", ""),
        ({"script": IMPORTED}, None, "note", "imports lightning_patches in line 3"),
        ({"script": IMPORTED}, "off", "error", ""),
        ({"script": FORKING[:1]}, "1", "error", ""),
    ],
    ids=str,
)
def test_problem_with_a_patch_is_a_note(given: dict[str, Any], spec: Any, severity: str, words: str) -> None:
    environment = {} if spec is None else {"LIGHTNING_PATCHES": spec}
    (finding,) = checks.all_checks()["pkg-resources"](Facts(**OLD, **given, environment=environment))
    assert finding.severity == severity and words in finding.why


STAYS = "import lightning_patches  # noqa: F401  # isort: skip"


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (f"{STAYS}\nimport lightning", [script.PATCHED]),
        ("import lightning_patches\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("import lightning_patches  # noqa\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("import lightning_patches  # isort:skip\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("# isort: off\nimport lightning_patches  # NOQA\nimport lightning", [script.PATCHED]),
        ("import lightning_patches\nimport lightning\nlightning_patches.activate()", [script.PATCHED]),
        ("import lightning_patches  # noqa: E402  # isort: skip\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("import lightning_patches  # noqa: E402,F401  # isort: skip\nimport lightning", [script.PATCHED]),
        ("import lightning_patches  # noqa\nimport lightning\nimport os  # isort: skip",
         [script.PATCHED, script.REMOVABLE]),
        ("import lightning_patches as lp\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("import lightning_patches as lp\nimport lightning\nlp.activate()", [script.PATCHED]),
        ("import os, lightning_patches\nimport lightning\nprint(os)", [script.PATCHED, script.REMOVABLE]),
        ("from lightning_patches import activate\nimport lightning", [script.PATCHED, script.REMOVABLE]),
        ("from lightning_patches import activate\nimport lightning\nactivate()", [script.PATCHED]),
        ("from lightning_patches import (  # isort: skip\n    activate,  # noqa: F401\n)\nimport lightning",
         [script.PATCHED]),
        ("try:\n    import lightning_patches  # noqa: F401\nexcept ImportError:\n    pass\nimport lightning",
         [script.PATCHED]),
        (f"from lightning.pytorch import Trainer\n{STAYS}", [script.LATE]),
        ("import lightning\nimport lightning_patches\n\nlightning_patches.activate()", [script.USED]),
        ("import lightning\nfrom lightning_patches import GradientSyncCheck", [script.LATE, script.REMOVABLE]),
        ("import lightning\nfrom lightning_patches import rank_by_rank as r\nprint(r)", [script.USED]),
        ("import pytorch_lightning as pl\nimport lightning_patches", [script.LATE, script.REMOVABLE]),
        ("import lightning_fabric", [script.UNPATCHED]),
        ("import lightning, lightning_patches", [script.LATE, script.REMOVABLE]),
        ("import lightning_patches, lightning", [script.PATCHED, script.REMOVABLE]),
        ("def main():\n    import lightning\nimport lightning_patches", [script.PATCHED]),
        ("if x:\n    import lightning_fabric\nimport lightning_patches", [script.LATE, script.REMOVABLE]),
        ("if x:\n    import lightning_patches\nimport lightning", []),
        ("import lightning_utilities\nfrom .lightning import x", []),
        ("def train():\n    import lightning_patches\nimport lightning", []),
        ("import torch", []),
        ("import lightning_patches", [script.PATCHED]),
        ("lazy import lightning_patches\nimport lightning", [script.LAZY]),
        ("import os; lazy import lightning_patches\nlazy import lightning", [script.LAZY]),
        ("lazy from lightning_patches import activate\nimport lightning", [script.LAZY]),
        ("lazy from lightning_patches import activate\nimport lightning\nactivate()", [script.USED]),
        ("lazy import lightning_patches as p\nimport lightning\np.activate()", [script.USED]),
        ("__lazy_modules__ = {'lightning_patches'}\nimport lightning_patches\nimport lightning", [script.LAZY]),
        ('text = """\nlazy import lightning_patches\n"""\nimport lightning', [script.UNPATCHED]),
        (f"lazy import os\n{STAYS}\nlazy import lightning", [script.PATCHED]),
    ],
)  # fmt: skip
def test_import_of_a_script_is_classified(source: str, kinds: list[str]) -> None:
    found = list(script.look_through(source.encode()))
    assert [kind for kind, *_ in found] == kinds
    lines = source.splitlines()
    assert all("lightning_patches" in lines[line - 1] for kind, line, _ in found if kind == script.PATCHED)


@pytest.mark.parametrize(
    ("spec", "autostart", "is_said"),
    [(None, False, True), ("1", False, True), ("0", False, False), (None, True, True), ("1", True, False)],
)
def test_script_without_the_import_is_reported_if_nothing_else_activates(spec, autostart, is_said):
    found = tuple(script.look_through(b"import lightning"))
    environment = {} if spec is None else {"LIGHTNING_PATCHES": spec}
    findings = checks.run(Facts(environment=environment, autostart=autostart, script=found))
    assert [finding.check for finding in findings] == ["patches-import"] * is_said


def test_lazy_import_is_a_warning() -> None:
    found = tuple(script.look_through(b"lazy import lightning_patches\nimport lightning"))
    (finding,) = checks.run(Facts(script=found))
    assert (finding.check, finding.severity) == ("patches-import", "warning")
    assert finding.what == "the script imports lightning_patches in line 1 lazily"
    assert "without `lazy`" in finding.do


GUARD = "if __name__ == '__main__':\n    "
FIT = "trainer.fit(model, loader)"
LOADER = "loader = DataLoader(data, num_workers=2)\n"
IN_FUNCTION = "def main():\n    class Mine(Dataset): pass\n    def collate(batch): pass\n    "


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (f"{LOADER}{FIT}", [script.UNGUARDED]),
        (f"{LOADER}{GUARD}{FIT}", []),
        (f"def main():\n    {LOADER}    {FIT}\nmain()", [script.UNGUARDED]),
        (f"def main():\n    {LOADER}    {FIT}\n{GUARD}main()", []),
        (f"{LOADER}def main(): {FIT}", []),
        (f"{LOADER}scaler.fit(data)\n{GUARD}{FIT}", []),
        (f"{LOADER}mine = pl.Trainer()\nmine.test(model, loader)", [script.UNGUARDED]),
        (f"{LOADER}Trainer().fit(model, loader)", [script.UNGUARDED]),
        (f"{LOADER}LightningCLI(Model)", [script.UNGUARDED]),
        (f"workers = 2\nloader = DataLoader(data, num_workers=workers)\n{FIT}", [script.UNGUARDED]),
        (f"loader = DataLoader(data, num_workers=args.workers)\n{FIT}", []),
        (f"loader = DataLoader(data, num_workers=0)\n{FIT}", []),
        (f"loader = DataLoader(data, num_workers=2, multiprocessing_context='fork')\n{FIT}", []),
        (f"multiprocessing.set_start_method('fork')\n{LOADER}{FIT}", [script.FORKS]),
        ("DataLoader(data, num_workers=2, collate_fn=lambda batch: batch)", [script.UNPICKLABLE]),
        ("collate = lambda batch: batch\nDataLoader(data, num_workers=2, collate_fn=collate)", [script.UNPICKLABLE]),
        ("DataLoader(data, collate_fn=lambda batch: batch)", []),
        ("DataLoader(data, num_workers=1, worker_init_fn=lambda index: None)", [script.UNPICKLABLE]),
        (f"{IN_FUNCTION}DataLoader(data, num_workers=1, collate_fn=collate)", [script.UNPICKLABLE]),
        ("def collate(batch): pass\nDataLoader(data, num_workers=1, collate_fn=collate)", []),
        (f"{IN_FUNCTION}DataLoader(Mine(), num_workers=1)", [script.UNPICKLABLE]),
        (f"{IN_FUNCTION}DataLoader(dataset=Mine(), num_workers=1)", [script.UNPICKLABLE]),
        (f"{IN_FUNCTION}self.data = Mine()\n    DataLoader(self.data, num_workers=1)", [script.UNPICKLABLE]),
        (f"{IN_FUNCTION}DataLoader(Mine())", []),
        ("class Mine(Dataset): pass\nDataLoader(Mine(), num_workers=1)", []),
    ],
)
def test_workers_that_cannot_start_by_forkserver_are_found(source: str, kinds: list[str]) -> None:
    assert [kind for kind, *_ in script.look_through(source.encode(), "forkserver")] == kinds
    assert [kind for kind, *_ in script.look_through(source.encode(), "fork")] == [
        k for k in kinds if k == script.FORKS
    ]


@pytest.mark.parametrize(
    "source",
    [
        f"multiprocessing.set_start_method('spawn')\n{LOADER}{FIT}",
        f"loader = DataLoader(data, num_workers=2, multiprocessing_context='forkserver')\n{FIT}",
    ],
)
def test_workers_are_found_when_the_script_chooses_their_start_method(source: str) -> None:
    assert [kind for kind, *_ in script.look_through(source.encode(), "fork")] == [script.UNGUARDED]


LOADING = """
from types import SimpleNamespace
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return index

def collate(batch):
    return batch

def load_local():
    class Local(Numbers):
        pass
    return DataLoader(Local(), num_workers=1, multiprocessing_context="forkserver")

trainer = SimpleNamespace(fit=list)
"""
LOAD = 'trainer.fit(DataLoader(Numbers(), num_workers=1, multiprocessing_context="forkserver", collate_fn={}))'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        (GUARD + LOAD.format("collate"), False),
        (LOAD.format("collate"), True),
        (GUARD + LOAD.format("lambda batch: batch"), True),
        (GUARD + "trainer.fit(load_local())", True),
    ],
)
def test_programs_fail_when_doctor_finds_workers_that_cannot_start(line: str, is_found: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = LOADING if "local" in line else LOADING.replace("num_workers=1", "num_workers=0")
    (tmp_path / "train.py").write_text(source + line)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert (done.returncode != 0) is is_found, done.stderr
    found = [kind for kind, *_ in script.look_through((source + line).encode())]
    assert (found in ([script.UNGUARDED], [script.UNPICKLABLE])) is is_found


def test_doctor_and_diagnose_name_the_same_releases_of_setuptools() -> None:
    """81.0.0 is the last one whose wheel has pkg_resources."""
    (finding,) = checks.all_checks()["pkg-resources"](Facts(**OLD))
    advised = [finding.do, WORKAROUNDS["import-without-pkg-resources"], *(one.do for one in frequent())]
    assert set(re.findall(r"setuptools[<=>]+\d+", " ".join(advised))) == {WITH_PKG_RESOURCES} == {"setuptools<82"}


def test_every_check_is_tested() -> None:
    assert {check for check, *_ in FOUND} == set(checks.all_checks())


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"environment": TORCHRUN, "busy_port": True},
        {"environment": SLURM},
        {"environment": {"SLURM_NTASKS": "8", "SLURM_JOB_NAME": "interactive"}},
        {"environment": {"NCCL_SOCKET_IFNAME": "eth"}, "interfaces": ("eth0",)},
        {"environment": {"MASTER_PORT": "29500", "RANK": "1", "LOCAL_RANK": "1"}, "busy_port": True},
        {"environment": {"CUDA_VISIBLE_DEVICES": "0,1"}, "gpus": (H100, dataclasses.replace(H100, index=1))},
        {"torch": CUDA, "gpus": (H100, dataclasses.replace(H100, index=1)), "driver": "550.54", "driver_cuda": (12, 4)},
        {"lightnings": (Lightning("lightning", "2.4.0"),), "has_pkg_resources": False},
        {"lightnings": (Lightning("lightning", "2.4.0"), Lightning("pytorch-lightning", "2.4.0"))},
        {"script": FORKING[:1]},
    ],
    ids=str,
)
def test_healthy_environment_has_no_findings(given: dict[str, Any]) -> None:
    assert checks.run(Facts(**given)) == []


def test_most_serious_finding_comes_first() -> None:
    found = checks.run(Facts(open_files=10, gpus=(H100, A100), environment={"MASTER_PORT": "0"}))
    assert [finding.severity for finding in found] == ["error", "warning", "note"]


def test_script_is_read() -> None:
    source = b"""
import torch
from lightning import Trainer
def later():
    torch.zeros(1).cuda()
torch.cuda.is_available()
scale = torch.ones(1, device="cuda")
trainer = Trainer(strategy="ddp_fork")
weights = torch.zeros(1).to("cuda:0")
init = dict(init_method="file:///home/store")
"""
    found = list(script.look_through(source))
    assert [(kind, line) for kind, line, _ in found] == [
        (script.UNPATCHED, 3),
        (script.TOUCHES_CUDA, 7),
        (script.FORKS, 8),
        (script.FILE_RENDEZVOUS, 10),
    ]


def write_metadata(site: Path, *lines: str) -> None:
    (site / "lightning-9.9.dist-info").mkdir()
    (site / "lightning-9.9.dist-info" / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.1", "Name: lightning", "Version: 9.9", *lines]) + "\n"
    )


class TestMachine:
    def test_missing_requirements_are_found_by_metadata(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_metadata(
            tmp_path, "Requires-Dist: packaging<99", "Requires-Dist: pytorch-lightning",
            "Requires-Dist: not-there[http] (<2.0,>=0.7)", "Requires-Dist: Not_There>=1.9.*",
            'Requires-Dist: not-on-this-python; python_version < "3"',
            'Requires-Dist: not-without-an-extra; extra == "all"', "Requires-Dist: without-metadata",
        )  # fmt: skip
        (tmp_path / "without_metadata.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        found = machine._missing((Lightning("lightning", "9.9"),))
        assert found == (Missing("not-there", "not-there[http]<2.0,>=0.7", "lightning 9.9"),)

    @pytest.mark.parametrize("name", ["torch", "torchmetrics", "lightning-utilities"])
    def test_missing_requirements_are_found_without_metadata(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A source tree of Lightning on PYTHONPATH has no metadata."""
        find = machine.importlib.machinery.PathFinder.find_spec
        module = name.replace("-", "_")
        monkeypatch.setattr(machine, "_version", lambda distribution: "" if distribution == name else "1.0")
        monkeypatch.setattr(
            machine.importlib.machinery.PathFinder,
            "find_spec",
            lambda of, *more: None if of == module else find(of, *more),
        )
        found = machine._missing((Lightning("lightning", "9.9"),))
        assert found == (Missing(name, name, "lightning 9.9"),)

    def test_busy_port_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen(1)
            port = taken.getsockname()[1]
            monkeypatch.setenv("MASTER_PORT", str(port))
            assert gather(ask_torch=False).busy_port
        assert not gather(ask_torch=False).busy_port

    def test_unwritable_directories_are_found(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        directories = {
            "TMPDIR": str(tmp_path / "gone"),
            "HOME": "/dev/null",
            hang_files.VARIABLE: str(tmp_path / "a" / "b"),
        }
        assert machine._unwritable(directories) == {"TMPDIR": str(tmp_path / "gone"), "HOME": "/dev/null"}
        broken = {"TMPDIR": str(tmp_path), hang_files.VARIABLE: str(tmp_path / "file" / "b")}
        assert machine._unwritable(broken) == {hang_files.VARIABLE: str(tmp_path / "file" / "b")}

    @pytest.mark.parametrize("node", ["0", "1"])
    def test_port_of_the_hang_watch_is_checked(self, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """On rank zero's node the port must be free. On others a refused connection is fine, and silence a firewall."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            given = {"WORLD_SIZE": "2", "RANK": node, "LOCAL_RANK": "0", "GROUP_RANK": node, "MASTER_PORT": "29500"}
            given.update(MASTER_ADDR=socket.gethostname(), LIGHTNING_PATCHES_HANG_TIMEOUT="300")
            given.update(LOCAL_WORLD_SIZE="1", LIGHTNING_PATCHES_HANG_PORT=str(port))
            for name in [name for name in os.environ if name.startswith(("SLURM", "LIGHTNING_PATCHES_HANG", "NODE_"))]:
                monkeypatch.delenv(name)
            for name, value in given.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
            found = machine._hang_ports(dict(os.environ))
            assert [*found.values()] == (["is in use on this machine"] if node == "0" else []), found
        assert machine._hang_ports(dict(os.environ)) == {}

    def test_blocked_port_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nobody(*args: Any, **kwargs: Any) -> None:
            raise TimeoutError

        environment = {"LIGHTNING_PATCHES_HANG_TIMEOUT": "300"}
        identity = Identity(1, 0, 1, 2, "10.0.0.1", False, "29500")
        monkeypatch.setattr(machine._identity, "find", lambda frames: identity)
        monkeypatch.setenv("LIGHTNING_PATCHES_HANG_PORT", "12345")
        monkeypatch.setattr(socket, "create_connection", nobody)
        found = machine._hang_ports(environment)
        assert found == {"10.0.0.1:12345": "can't be reached from this node: no answer"}

    def test_driver_that_cannot_be_queried_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken:
            def __enter__(self) -> None:
                raise OSError("the driver is not loaded")

            def __exit__(self, *error: object) -> None: ...

        monkeypatch.setattr(devices.nvml, "Library", Broken)
        unknown: list[Unknown] = []
        assert devices.ask_driver(unknown) == ((), "", None)
        assert unknown == [("GPUs", "the driver is not loaded")]

    def test_slow_torch_is_reported_as_unknown(self) -> None:
        unknown: list[Unknown] = []
        assert devices.ask_torch(unknown, 0.01) is None
        assert unknown == [("torch", "did not answer within 0 s")]

    def test_code_in_the_working_directory_is_not_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        here, installed = tmp_path / "here", tmp_path / "installed"
        here.mkdir()
        installed.mkdir()
        for name in ("json", "warnings", "torch", "sitecustomize"):
            (here / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')\n")
        (installed / "torch.py").write_text(
            "from types import SimpleNamespace\n"
            "__version__, version = '9.9', SimpleNamespace(cuda=None)\n"
            "cuda = SimpleNamespace(is_initialized=lambda: False, is_available=lambda: False)\n"
        )
        monkeypatch.chdir(here)
        monkeypatch.setenv("PYTHONPATH", str(installed))
        unknown: list[Unknown] = []
        found = devices.ask_torch(unknown, 90)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "installed"]
        assert (found, unknown) == (Torch("9.9"), [])


class TestCommand:
    @pytest.mark.parametrize(("method", "expected"), [("fork", []), ("forkserver", ["worker-start"])])
    def test_workers_are_checked_with_the_default_start_method(self, tmp_path, method, expected, monkeypatch, capsys):
        monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: [method, "spawn"])
        (tmp_path / "train.py").write_text(f"{LOADER}{FIT}")
        cli.main(["doctor", "--no-torch", "--json", str(tmp_path / "train.py")])
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert [each["check"] for each in findings if each["check"] == "worker-start"] == expected

    @pytest.mark.parametrize("enabled", [False, True])
    def test_facts_are_in_the_document(self, enabled, monkeypatch, capsys):
        monkeypatch.setattr(autostart, "is_enabled", lambda: enabled)
        status = cli.main(["doctor", "--no-torch", "--json"])
        document = json.loads(capsys.readouterr().out)
        assert set(document) == {"schema", "findings", "checks", "unknown", "facts", "ok"}
        assert document["facts"]["torch"] is None and document["facts"]["autostart"] is enabled
        grave = [finding for finding in document["findings"] if finding["severity"] != "note"]
        assert status == (1 if grave else 0) and document["ok"] is not bool(grave)
        assert set(document["facts"]["environment"]) <= set(os.environ)
        assert "PATH" not in document["facts"]["environment"]

    def test_findings_and_notes_decide_the_status(self, monkeypatch, capsys):
        for given, plain, strict in (({}, 0, 0), ({"open_files": 10}, 0, 1), ({"shm_bytes": None}, 1, 1)):
            monkeypatch.setattr(machine, "gather", lambda given=given, **_: Facts(**given))
            assert cli.main(["doctor"]) == plain
            assert cli.main(["doctor", "--strict"]) == strict
        assert "WARNING shared-memory: there is no /dev/shm" in capsys.readouterr().out

    def test_missing_script_is_reported(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["doctor", "--no-torch", "no_such_script.py"]) == 2
        assert "no_such_script.py" in capsys.readouterr().err

    def test_torch_is_imported_in_another_process(self) -> None:
        program = (
            "import sys; from lightning_patches.cli import main; main(['doctor', '--json']); "
            "print(sorted({'torch', 'lightning', 'pytorch_lightning'} & set(sys.modules)))"
        )
        variables = {name: value for name, value in os.environ.items() if name not in TORCHRUN}
        variables = {**variables, "PYTHONPATH": str(ROOT), "LOCAL_RANK": "0"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=300
        )
        text, _, modules = done.stdout.rpartition("}\n")
        assert modules.strip() == "[]", done
        document = json.loads(text + "}")
        assert document["facts"]["torch"]["version"], document["unknown"]
        assert "leftover-rank" in {finding["check"] for finding in document["findings"]}
