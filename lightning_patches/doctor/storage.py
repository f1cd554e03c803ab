"""Checks of shared memory, limits and directories."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.doctor.facts import Facts, rendezvous_file
from lightning_patches.doctor.findings import Finding

GIB = 2**30
MIN_SHM = GIB
"""Smallest ``/dev/shm`` without a warning, in bytes. Docker's default is 64 MiB."""
MIN_OPEN_FILES = 4096


def shared_memory(facts: Facts) -> Iterator[Finding]:
    """``/dev/shm`` is missing, small or full."""
    why = (
        "DataLoader workers pass batches through /dev/shm, and NCCL has its buffers there. If it is too small, a "
        'worker ends with "Bus error", or NCCL with an unhandled system error.'
    )
    do = "In a container, use --shm-size=16g or --ipc=host. In Kubernetes, mount an emptyDir (medium Memory) there."
    if facts.shm_bytes is None:
        yield Finding("shared-memory", "warning", "there is no /dev/shm", why, do)
    elif facts.shm_bytes < MIN_SHM:
        yield Finding("shared-memory", "warning", f"/dev/shm has {facts.shm_bytes // 2**20} MiB", why, do)
    elif facts.shm_free_bytes < facts.shm_bytes // 10:
        free, size = facts.shm_free_bytes // 2**20, facts.shm_bytes // 2**20
        yield Finding(
            "shared-memory",
            "warning",
            f"/dev/shm is nearly full: {free} of {size} MiB are free",
            why,
            "Remove files of earlier runs from /dev/shm, or make it larger.",
        )


def limits(facts: Facts) -> Iterator[Finding]:
    """Process limits that several ranks or workers can exceed."""
    if facts.open_files < MIN_OPEN_FILES:
        yield Finding(
            "limits",
            "note",
            f"a process may have {facts.open_files} files open",
            'Each DataLoader worker and each connection to another rank needs one. A rank may end with "Too many open '
            'files".',
            "Raise the limit (ulimit -n 65536), or call torch.multiprocessing.set_sharing_strategy('file_system').",
        )
    if facts.infiniband and 0 <= facts.locked_memory_bytes < GIB:
        yield Finding(
            "limits",
            "warning",
            f"a process may lock only {facts.locked_memory_bytes // 1024} KiB of memory, and there is InfiniBand",
            "NCCL locks its buffers to register them with the InfiniBand adapter. Without enough locked memory, it "
            "fails or uses slow sockets.",
            "Raise the limit (ulimit -l unlimited; in a container --ulimit memlock=-1).",
        )


def temporary_directory(facts: Facts) -> Iterator[Finding]:
    """Temporary files are on a network file system, can't be written, or are in a different directory in each rank."""
    rendezvous = rendezvous_file(facts.environment)
    for path, kind in facts.network_paths.items():
        if path != rendezvous:
            yield Finding(
                "temporary-directory",
                "note",
                f"temporary files are in {path}, on {kind}",
                "Workers create sockets there, and torch.compile creates its cache. Ranks of all nodes write to the "
                "same directory, which is slow, and sockets may not work on a network file system.",
                "Set TMPDIR to a local disk.",
            )
    path = facts.environment.get("TMPDIR", "")
    if "TMPDIR" in facts.unwritable:
        yield Finding(
            "temporary-directory",
            "warning",
            f"files can't be created in TMPDIR={path}",
            "Python silently uses another directory, often a small /tmp. Other programs fail.",
            "Create the directory on every node before training starts, or unset TMPDIR.",
        )
    ranks = {facts.environment.get(name, "") for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID")}
    own = re.search(r"(?:rank|task|proc|local)[^/\d]*(\d+)/*$", path, re.IGNORECASE)
    if own is not None and own[1] in ranks:
        yield Finding(
            "temporary-directory",
            "note",
            f"TMPDIR={path} looks like a directory of this rank only",
            "Ranks of a node share temporary files, such as torch.compile's cache or the file of a file store. With "
            "separate directories, each rank creates a cache, and ranks with a file store hang. (lightning_patches "
            "does not need a shared directory.)",
            "Set the same TMPDIR in all ranks of a node.",
        )


def home_directory(facts: Facts) -> Iterator[Finding]:
    """The home directory can't be written to."""
    if "HOME" in facts.unwritable:
        yield Finding(
            "home-directory",
            "warning",
            f"files can't be created in HOME={facts.unwritable['HOME']}",
            "torch.hub, Triton, transformers and matplotlib keep their caches there. A rank ends when it first uses "
            "one, and the others wait for it.",
            "Set HOME to a directory that you can write to, or set XDG_CACHE_HOME, TORCH_HOME, TRITON_CACHE_DIR, "
            "HF_HOME and MPLCONFIGDIR.",
        )


CHECKS = (shared_memory, limits, temporary_directory, home_directory)
