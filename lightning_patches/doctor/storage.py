"""Checks of shared memory, limits and directories."""

from __future__ import annotations

import re
from typing import Iterator

from lightning_patches.doctor import Finding
from lightning_patches.doctor.facts import Facts

GIB = 2**30
MIN_SHM = GIB
"""Docker gives 64 MiB."""
MIN_OPEN_FILES = 4096


def shared_memory(facts: Facts) -> Iterator[Finding]:
    """``/dev/shm`` is missing, small or full."""
    why = (
        'DataLoader workers hand batches over in it, and NCCL its buffers: if it is too small, a worker ends with "Bus '
        'error", or NCCL with an unhandled system error.'
    )
    do = "In a container: --shm-size=16g or --ipc=host; in Kubernetes: an emptyDir of medium Memory on /dev/shm."
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
            "Remove what ended runs left in it, or make it larger.",
        )


def limits(facts: Facts) -> Iterator[Finding]:
    """Limits of a process that several ranks or workers reach."""
    if facts.open_files < MIN_OPEN_FILES:
        yield Finding(
            "limits",
            "note",
            f"a process may have {facts.open_files} files open",
            'DataLoader workers and sockets between many ranks use one each: "Too many open files".',
            "ulimit -n 65536; or torch.multiprocessing.set_sharing_strategy('file_system').",
        )
    if facts.infiniband and 0 <= facts.locked_memory_bytes < GIB:
        yield Finding(
            "limits",
            "warning",
            f"a process may lock {facts.locked_memory_bytes // 1024} KiB of memory, and there is InfiniBand",
            "NCCL registers its buffers with the adapter, which locks them: it fails, or falls back to slow sockets.",
            "Raise the limit (ulimit -l unlimited; in a container --ulimit memlock=-1).",
        )


def temporary_directory(facts: Facts) -> Iterator[Finding]:
    """Temporary files lie on the network, nowhere, or in a different place for each rank."""
    from lightning_patches.doctor.facts import rendezvous_file

    rendezvous = rendezvous_file(facts.environment)
    for path, kind in facts.network_paths.items():
        if path != rendezvous:
            yield Finding(
                "temporary-directory",
                "note",
                f"temporary files go to {path}, on {kind}",
                "Workers' sockets and torch.compile's cache lie there: ranks of all nodes write to the same place, "
                "slowly, and sockets may not work at all.",
                "Set TMPDIR to a local disk.",
            )
    path = facts.environment.get("TMPDIR", "")
    if "TMPDIR" in facts.unwritable:
        yield Finding(
            "temporary-directory",
            "warning",
            f"no file can be made in TMPDIR={path}",
            "Python silently takes another directory, often the small /tmp; other programs fail.",
            "Make the directory on every node before training starts, or unset TMPDIR.",
        )
    ranks = {facts.environment.get(name, "") for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID")}
    own = re.search(r"(?:rank|task|proc|local)[^/\d]*(\d+)/*$", path, re.IGNORECASE)
    if own is not None and own[1] in ranks:
        yield Finding(
            "temporary-directory",
            "note",
            f"TMPDIR={path} looks like this rank's own",
            "What ranks of a node share by way of temporary files, such as torch.compile's cache or a rendezvous by a "
            "file, each rank makes for itself, or waits for in vain. (Nothing in lightning_patches depends on it.)",
            "Set the same TMPDIR in all ranks of a node.",
        )


def home_directory(facts: Facts) -> Iterator[Finding]:
    """The home directory can't be written to."""
    if "HOME" in facts.unwritable:
        yield Finding(
            "home-directory",
            "warning",
            f"no file can be made in HOME={facts.unwritable['HOME']}",
            "Caches of torch.hub, Triton, transformers and matplotlib lie there: a rank ends at the first use, and the "
            "others wait for it.",
            "Set HOME to a directory of your own, or XDG_CACHE_HOME, TORCH_HOME, TRITON_CACHE_DIR, HF_HOME and "
            "MPLCONFIGDIR.",
        )


CHECKS = (shared_memory, limits, temporary_directory, home_directory)
