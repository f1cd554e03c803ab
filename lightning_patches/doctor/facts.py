"""What the checks are told of the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from lightning_patches.engine.installed import BrokenImport

PACKAGES = (
    "torch",
    "accelerate",
    "bitsandbytes",
    "deepspeed",
    "peft",
    "transformers",
    "setuptools",
    "lightning",
    "pytorch-lightning",
    "lightning-fabric",
)

IMPORTED_AT_ONCE = ("torch", "torchmetrics", "lightning-utilities", "fsspec", "pyyaml", "tqdm", "packaging")
"""Packages that ``import lightning.pytorch`` needs in each release from 2.0 on."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as its driver shows it.

    Args:
        index: the driver's number, in the order of the PCI bus.
        name: the model.
        memory_mib: memory in MiB.
        used_mib: how much of it is in use now, by anybody.
        capability: compute capability, ``(9, 0)``; ``None`` if it cannot be told.
        exclusive: the compute mode lets only one process use it, or none.
    """

    index: int
    name: str
    memory_mib: int = 0
    used_mib: int = 0
    capability: Optional[tuple[int, int]] = None
    exclusive: bool = False


@dataclass(frozen=True)
class Torch:
    """What torch says of itself, in a process of its own.

    Args:
        version: torch's.
        cuda: the CUDA that it was built with, ``None`` for a build without.
        nccl: version of the NCCL that it loads, "" if there is none.
        cuda_available: ``torch.cuda.is_available()``.
        cuda_error: why CUDA cannot be used, in torch's words.
        devices: number of CUDA devices that it sees.
        architectures: compute capabilities that it was built for, ``"sm_90"``.
        no_peer_access: pairs of devices that cannot reach each other's memory.
        initialized_by_import: ``import torch`` alone left CUDA initialized.
    """

    version: str
    cuda: Optional[str] = None
    nccl: str = ""
    cuda_available: bool = False
    cuda_error: str = ""
    devices: int = 0
    architectures: tuple[str, ...] = ()
    no_peer_access: tuple[tuple[int, int], ...] = ()
    initialized_by_import: bool = False


@dataclass(frozen=True)
class Lightning:
    """An installed Lightning.

    Args:
        distribution, version: the release.
        forbidden: it is a compromised release.
        note: what the user must know about it, "" for nothing.
        broken: why its import fails here, and what to do; ``None`` if it is not known to fail.
    """

    distribution: str
    version: str
    forbidden: bool = False
    note: str = ""
    broken: Optional[BrokenImport] = None


class Missing(NamedTuple):
    """A required package that is not installed.

    Args:
        name: the package, as ``"torchmetrics"``.
        requirement: the package with the versions that are allowed, as pip takes it.
        by: distribution and version of the Lightning that requires it.
    """

    name: str
    requirement: str
    by: str


class Unknown(NamedTuple):
    """Something that could not be found out.

    Args:
        what: ``"torch"``, ``"GPUs (smi)"``.
        why: in words.
    """

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Facts:
    """Everything the checks look at. The defaults stand for a machine about which there is nothing to say.

    Args:
        environment: the environment variables.
        lightnings: the Lightnings that would be imported.
        packages: distribution -> version, of those in :data:`PACKAGES` that are installed.
        torch: ``None`` if it is not installed or did not answer; ``unknown`` says which.
        missing: packages that an installed Lightning requires and that cannot be found.
        pinned: distribution -> version that torch's wheel asks for, of NVIDIA's packages.
        pinned_installed: distribution -> installed version, of the same packages.
        has_pkg_resources: ``pkg_resources`` can be imported.
        autostart: programs of this environment look at ``LIGHTNING_PATCHES`` when they start.
        gpus: those that the driver shows.
        driver: its version, "" without one.
        driver_cuda: newest CUDA that the driver can run, ``(12, 4)``.
        iommu: the machine translates the addresses of devices (I/O virtualization).
        infiniband: there is an InfiniBand adapter.
        foreign_nccl: files on ``LD_LIBRARY_PATH`` or in ``LD_PRELOAD`` that come before torch's own NCCL.
        shm_bytes: size of ``/dev/shm``; ``None`` if there is none.
        shm_free_bytes: how much of it is free.
        open_files: how many files a process may have open.
        locked_memory_bytes: how much memory it may lock, -1 for no limit.
        interfaces: names of the network interfaces.
        addresses: host -> whether its name can be resolved, for ``MASTER_ADDR`` and this host's own name.
        busy_port: ``MASTER_PORT`` is taken by another program on this machine.
        network_paths: directory -> type of its file system, for those that matter here and lie on the network.
        unwritable: variable -> directory, of the variables that name one in which no file can be made.
        hang_ports: ``"host:port"`` -> what is wrong, of the ports that the hang watch would use.
        script: findings in the user's script; each is ``(kind, line, text)``.
        unknown: what could not be found out, and why.
    """

    environment: dict[str, str] = field(default_factory=dict)
    lightnings: tuple[Lightning, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    torch: Optional[Torch] = None
    missing: tuple[Missing, ...] = ()
    pinned: dict[str, str] = field(default_factory=dict)
    pinned_installed: dict[str, str] = field(default_factory=dict)
    has_pkg_resources: bool = True
    autostart: bool = False
    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    driver_cuda: Optional[tuple[int, int]] = None
    iommu: bool = False
    infiniband: bool = False
    foreign_nccl: tuple[str, ...] = ()
    shm_bytes: Optional[int] = 64 * 2**30
    shm_free_bytes: int = 64 * 2**30
    open_files: int = 1 << 20
    locked_memory_bytes: int = -1
    interfaces: tuple[str, ...] = ()
    addresses: dict[str, bool] = field(default_factory=dict)
    busy_port: bool = False
    network_paths: dict[str, str] = field(default_factory=dict)
    unwritable: dict[str, str] = field(default_factory=dict)
    hang_ports: dict[str, str] = field(default_factory=dict)
    script: tuple[tuple[str, int, str], ...] = ()
    unknown: tuple[Unknown, ...] = ()


def rendezvous_file(environment: dict[str, str]) -> str:
    """The file through which torchrun's ranks are to find each other, "" if it is not a file."""
    if "store_type=file" not in environment.get("PET_RDZV_CONF", "").replace(" ", ""):
        return ""
    return environment.get("PET_RDZV_ENDPOINT", "")
