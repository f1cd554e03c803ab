"""Checks of the GPUs, their driver, and the transfers between them."""

from __future__ import annotations

import re
from typing import Iterator, Optional

from lightning_patches.doctor.facts import Facts
from lightning_patches.doctor.findings import Finding

MINIMUM_DRIVER = {11: (450, 80), 12: (525, 60), 13: (580, 0)}
"""Major version of CUDA -> oldest driver for it on Linux, by NVIDIA's rule of minor version compatibility."""


def mixed_models(facts: Facts) -> Iterator[Finding]:
    """GPUs of different models or memory sizes."""
    kinds = {(gpu.name, gpu.memory_mib) for gpu in facts.gpus}
    if len(kinds) > 1:
        listed = ", ".join(f"{gpu.index}: {gpu.name} ({gpu.memory_mib} MiB)" for gpu in facts.gpus)
        yield Finding(
            "mixed-models",
            "warning",
            f"the GPUs differ: {listed}",
            "Every step waits for the slowest rank, and the smallest memory limits the batch size. Between some models "
            "NCCL finds no common path and hangs at start. CUDA gives the fastest GPU number 0, and the driver numbers "
            "GPUs by slot.",
            "Train on GPUs of one model. Choose them with CUDA_DEVICE_ORDER=PCI_BUS_ID and CUDA_VISIBLE_DEVICES.",
        )


def no_cuda(facts: Facts) -> Iterator[Finding]:
    """The machine has GPUs that torch can't use."""
    torch = facts.torch
    if torch is None or not facts.gpus or torch.cuda_available:
        return
    hidden = facts.environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        yield Finding(
            "no-cuda",
            "warning",
            f"CUDA_VISIBLE_DEVICES={hidden!r} hides all {len(facts.gpus)} GPUs",
            "torch sees no GPU, and accelerator='auto' trains on the CPU.",
            "Unset CUDA_VISIBLE_DEVICES, or list the GPUs to use in it.",
        )
    elif torch.cuda is None:
        yield Finding(
            "no-cuda",
            "error",
            f"torch {torch.version} is built without CUDA, and this machine has {len(facts.gpus)} GPUs",
            "accelerator='gpu' fails, and accelerator='auto' trains on the CPU.",
            "Install a torch that is built for CUDA.",
        )
    else:
        yield Finding(
            "no-cuda",
            "error",
            f"torch {torch.version} cannot use CUDA: {torch.cuda_error or 'torch gives no reason'}",
            "The machine has GPUs and a driver, but programs that use torch can't reach the GPUs.",
            "Compare the versions of driver and CUDA (see other findings). Start a container with access to the GPUs. "
            "Reboot after an update of the driver.",
        )


def driver_too_old(facts: Facts) -> Iterator[Finding]:
    """The driver can't run the CUDA that torch was built with."""
    build = _pair(facts.torch.cuda) if facts.torch is not None and facts.torch.cuda else None
    driver = _pair(facts.driver)
    if build is None or driver is None:
        return
    minimum = MINIMUM_DRIVER.get(build[0])
    assert facts.torch is not None
    if minimum is not None and driver < minimum:
        yield Finding(
            "driver-too-old",
            "error",
            f"driver {facts.driver} is too old for torch {facts.torch.version}, which is built with CUDA "
            f"{facts.torch.cuda}",
            f"CUDA {build[0]} needs driver {minimum[0]}.{minimum[1]} or newer.",
            "Update the driver, or install a torch that is built with an older CUDA.",
        )
    elif facts.driver_cuda is not None and facts.driver_cuda < build:
        yield Finding(
            "driver-too-old",
            "note",
            f"driver {facts.driver} supports CUDA {facts.driver_cuda[0]}.{facts.driver_cuda[1]}, and torch is built "
            f"with {facts.torch.cuda}",
            "This works within one major version, but code that is compiled at run time (torch.compile, extensions) "
            'may fail with "unsupported toolchain".',
            "Update the driver if that happens.",
        )


def unsupported_architecture(facts: Facts) -> Iterator[Finding]:
    """torch has no code for a GPU of this machine."""
    torch = facts.torch
    if torch is None or not torch.architectures:
        return
    built = [int(match[1]) for name in torch.architectures if (match := re.match(r"(?:sm|compute)_(\d+)", name))]
    for gpu in facts.gpus:
        if gpu.capability is None or not built:
            continue
        major, minor = gpu.capability
        # Machine code runs on newer minor versions. Intermediate code is compiled for any newer GPU.
        runs = any(number // 10 == major and number % 10 <= minor for number in built)
        if not runs and not any("compute" in n and _number(n) <= major * 10 + minor for n in torch.architectures):
            yield Finding(
                "unsupported-architecture",
                "error",
                f"torch {torch.version} has no code for GPU {gpu.index}, {gpu.name} (sm_{major}{minor}); it has "
                f"{', '.join(torch.architectures)}",
                'The first operation fails with "no kernel image is available for execution on the device".',
                "Install a torch that is built for this GPU, or leave it out with CUDA_VISIBLE_DEVICES.",
            )


def no_peer_access(facts: Facts) -> Iterator[Finding]:
    """GPUs that can't reach each other's memory, and settings that break such transfers."""
    torch = facts.torch
    count = max(len(facts.gpus), torch.devices if torch is not None else 0)
    if torch is not None and torch.no_peer_access:
        pairs = ", ".join(f"{first}-{second}" for first, second in torch.no_peer_access[:6])
        more = " and more" if len(torch.no_peer_access) > 6 else ""
        yield Finding(
            "no-peer-access",
            "note",
            f"these GPUs cannot reach each other directly: {pairs}{more}",
            "NCCL uses the host's shared memory (/dev/shm), which is slower.",
            "You need to do nothing if training starts. If it hangs, set NCCL_DEBUG=INFO, then NCCL_P2P_DISABLE=1.",
        )
    if facts.iommu and count > 1:
        yield Finding(
            "no-peer-access",
            "warning",
            "the IOMMU translates the addresses of devices, and this machine has several GPUs",
            "Transfers between GPUs then pass through the host's root complex. NCCL may hang in its first collective, "
            "or get wrong data.",
            "On bare metal, switch the IOMMU off in the BIOS or boot with iommu=pt. Otherwise set NCCL_P2P_DISABLE=1.",
        )


def exclusive_mode(facts: Facts) -> Iterator[Finding]:
    """A compute mode that lets only one process use a GPU."""
    exclusive = [str(gpu.index) for gpu in facts.gpus if gpu.exclusive]
    if exclusive:
        yield Finding(
            "exclusive-mode",
            "warning",
            f"these GPUs are not in compute mode Default: {', '.join(exclusive)}",
            'A second process on the GPU fails with "all CUDA-capable devices are busy or unavailable". Ranks of older '
            "Lightning releases, and some forked workers, open a context on GPU 0 first.",
            "Ask an administrator to reset the mode (nvidia-smi -c DEFAULT), or make sure that each rank uses only one "
            "GPU.",
        )


def memory_in_use(facts: Facts) -> Iterator[Finding]:
    """GPUs whose memory is in use before training starts."""
    taken = [gpu for gpu in facts.gpus if gpu.memory_mib and gpu.used_mib > max(1024, gpu.memory_mib // 20)]
    if taken:
        listed = ", ".join(f"{gpu.index}: {gpu.used_mib} of {gpu.memory_mib} MiB" for gpu in taken)
        yield Finding(
            "memory-in-use",
            "note",
            f"GPU memory is already in use: {listed}",
            "Another program, or a rank of an earlier run, uses the GPU. It takes memory and time. A rank of an "
            "earlier run may also block its port.",
            "Run nvidia-smi, and end processes of your earlier runs.",
        )


def foreign_nccl(facts: Facts) -> Iterator[Finding]:
    """Another NCCL is loaded instead of torch's."""
    if facts.foreign_nccl:
        own = f"; torch has {facts.torch.nccl}" if facts.torch is not None and facts.torch.nccl else ""
        yield Finding(
            "foreign-nccl",
            "warning",
            f"LD_LIBRARY_PATH or LD_PRELOAD loads another NCCL: {', '.join(facts.foreign_nccl[:3])}{own}",
            "Ranks with different versions of NCCL hang or fail in their first collective.",
            "Remove that NCCL from the variable, or make sure that all nodes load the same version.",
        )


def cuda_before_fork(facts: Facts) -> Iterator[Finding]:
    """CUDA is initialized in a process that forks later."""
    why = (
        "A process that was forked after CUDA was initialized can't use CUDA. It hangs, or fails with \"Cannot "
        're-initialize CUDA in forked subprocess". strategy="ddp_fork" and "ddp_notebook" fork their ranks, and '
        "DataLoaders their workers."
    )
    if facts.torch is not None and facts.torch.initialized_by_import:
        yield Finding(
            "cuda-before-fork",
            "error",
            "`import torch` initializes CUDA in this environment",
            why,
            "Code that Python runs at its start (sitecustomize, a .pth file) uses CUDA. Remove it.",
        )
    forks = [place for place in facts.script if place[0] == "forks"]
    touches = [place for place in facts.script if place[0] == "touches-cuda"]
    if forks and touches:
        yield Finding(
            "cuda-before-fork",
            "error",
            f"the script uses CUDA in line {touches[0][1]} ({touches[0][2]}) and forks in line {forks[0][1]} "
            f"({forks[0][2]})",
            why,
            "Move the first line into the model, a hook or the launched function. Or start the ranks with "
            'strategy="ddp" or "ddp_spawn".',
        )


def _pair(text: str) -> Optional[tuple[int, int]]:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _number(architecture: str) -> int:
    match = re.search(r"\d+", architecture)
    return int(match[0]) if match else 0


CHECKS = (
    no_cuda,
    driver_too_old,
    unsupported_architecture,
    mixed_models,
    foreign_nccl,
    no_peer_access,
    exclusive_mode,
    cuda_before_fork,
    memory_in_use,
)
