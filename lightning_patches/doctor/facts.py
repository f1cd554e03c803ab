"""Facts about the machine, the input of the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from lightning_patches.known.installed import BrokenImport

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
    """One GPU, as reported by its driver.

    Args:
        index: the driver's number, in the order of the PCI bus.
        name: the model.
        memory_mib: memory in MiB.
        used_mib: memory in use by all processes, in MiB.
        capability: compute capability, ``(9, 0)``; ``None`` if unknown.
        exclusive: True if the compute mode allows at most one process.
    """

    index: int
    name: str
    memory_mib: int = 0
    used_mib: int = 0
    capability: Optional[tuple[int, int]] = None
    exclusive: bool = False


@dataclass(frozen=True)
class Torch:
    """Facts about torch, from a separate process.

    Args:
        version: version of torch.
        cuda: version of CUDA that it was built with, ``None`` for a build without CUDA.
        nccl: version of the NCCL that it loads, or "".
        cuda_available: ``torch.cuda.is_available()``.
        cuda_error: torch's error if CUDA can't be used.
        devices: number of visible CUDA devices.
        architectures: compute capabilities that it was built for, such as ``"sm_90"``.
        no_peer_access: pairs of devices that can't access each other's memory.
        initialized_by_import: True if ``import torch`` initializes CUDA.
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
        distribution: name of the distribution.
        version: its version.
        forbidden: True for a compromised release.
        note: a warning for the user, or "".
        broken: the reason why its import fails here, and the remedy; ``None`` if no reason is known.
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
        requirement: its requirement with the allowed versions, for pip.
        by: distribution and version of the Lightning that requires it.
    """

    name: str
    requirement: str
    by: str


class Unknown(NamedTuple):
    """A fact that could not be found.

    Args:
        what: the fact, such as ``"torch"`` or ``"GPUs"``.
        why: the reason.
    """

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Facts:
    """All facts that the checks read. The defaults describe a machine without problems.

    Args:
        environment: the environment variables.
        lightnings: the installed Lightning distributions.
        packages: versions of the installed distributions of :data:`PACKAGES`.
        torch: facts about torch; ``None`` if it is not installed, or did not answer (then ``unknown`` has the reason).
        missing: packages that an installed Lightning requires but that are not installed.
        pinned: versions of NVIDIA's packages that torch's wheel requires, by distribution.
        pinned_installed: installed versions of the packages in ``pinned``.
        has_pkg_resources: True if ``pkg_resources`` can be imported.
        autostart: True if autostart is enabled in this environment.
        gpus: the GPUs that the driver reports.
        driver: version of the driver, or "".
        driver_cuda: newest CUDA that the driver supports, such as ``(12, 4)``.
        iommu: True if an IOMMU translates the addresses of devices.
        infiniband: True if the machine has an InfiniBand adapter.
        foreign_nccl: NCCL files on ``LD_LIBRARY_PATH`` or in ``LD_PRELOAD``, which are loaded instead of torch's.
        shm_bytes: size of ``/dev/shm``, ``None`` without it.
        shm_free_bytes: free bytes of it.
        open_files: maximum number of open files of a process.
        locked_memory_bytes: maximum of locked memory of a process, -1 for no limit.
        interfaces: names of the network interfaces.
        addresses: ``MASTER_ADDR`` and this host's name, each with True if it can be resolved.
        busy_port: True if another program on this machine uses ``MASTER_PORT``.
        network_paths: file system types of the examined paths that are on a network file system.
        unwritable: variables whose directory can't be written to, with the directory.
        hang_ports: problems of the ports that the hang watch would use, by ``"host:port"``.
        script: findings in the user's script; each is ``(kind, line, text)``.
        unknown: the facts that could not be found, with reasons.
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
    """Return the file that torchrun's ranks use as their store, or ""."""
    if "store_type=file" not in environment.get("PET_RDZV_CONF", "").replace(" ", ""):
        return ""
    return environment.get("PET_RDZV_ENDPOINT", "")
