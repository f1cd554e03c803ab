"""Checks of the launcher's variables, and of the address, port and file with which ranks connect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Iterator, Optional

from lightning_patches.doctor.facts import Facts, rendezvous_file
from lightning_patches.doctor.findings import Finding
from lightning_patches.doctor.script import UNGUARDED, UNPICKLABLE
from lightning_patches.ranks.hang import _files as hang_files
from lightning_patches.ranks.hang import _secret as hang_secret
from lightning_patches.ranks.hang import _settings as hang_settings

_INTEGERS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def launcher_numbers(facts: Facts) -> Iterator[Finding]:
    """Variables of the launcher contradict each other."""
    env = facts.environment
    wrong = [f"{name}={env[name]!r}" for name in _INTEGERS if name in env and not env[name].isdigit()]
    if env.get("MASTER_PORT", "").isdigit() and not 0 < int(env["MASTER_PORT"]) < 65536:
        wrong.append(f"MASTER_PORT={env['MASTER_PORT']!r}")
    for rank, size in (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE"), ("LOCAL_WORLD_SIZE", "WORLD_SIZE")):
        first, second = _integer(env, rank), _integer(env, size)
        if first is not None and second is not None and (first > second if "SIZE" in rank else first >= second):
            wrong.append(f"{rank}={first} with {size}={second}")
    for name, slurm_name in (("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS")):
        if "TORCHELASTIC_RUN_ID" not in env and "SLURM_STEP_ID" in env:
            first, second = _integer(env, name), _integer(env, slurm_name)
            if first is not None and second is not None and first != second:
                wrong.append(f"{name}={first} with {slurm_name}={second}")
    if wrong:
        yield Finding(
            "launcher-numbers",
            "error",
            f"variables of the launcher contradict each other: {', '.join(wrong)}",
            "Ranks disagree about their number, or two processes have the same rank. The process group waits for ranks "
            "that never start.",
            "Unset variables of an earlier shell or script, and let one launcher set all of them.",
        )


def leftover_rank(facts: Facts) -> Iterator[Finding]:
    """Variables of a rank are set in a process that no launcher started."""
    env = facts.environment
    if "TORCHELASTIC_RUN_ID" in env or any(name.startswith(("OMPI_COMM_WORLD_", "PMI_")) for name in env):
        return
    if "LOCAL_RANK" in env and not {"RANK", "NODE_RANK", "GROUP_RANK"} & set(env):
        yield Finding(
            "leftover-rank",
            "warning",
            f"LOCAL_RANK={env['LOCAL_RANK']} is set without the other variables of a launcher",
            "With LOCAL_RANK, Lightning assumes that a launcher has started all ranks. It does not start any, and "
            "waits for the others.",
            "Unset LOCAL_RANK, or start the script with torchrun.",
        )
    elif "RANK" in env and "LOCAL_RANK" not in env and "SLURM_PROCID" not in env:
        yield Finding(
            "leftover-rank",
            "warning",
            f"RANK={env['RANK']} is set, and LOCAL_RANK is not",
            "Without LOCAL_RANK, Lightning starts all ranks of this node again in each process.",
            "Unset RANK, or let the launcher set LOCAL_RANK as well.",
        )
    elif "WORLD_SIZE" in env and not {"RANK", "LOCAL_RANK", "SLURM_PROCID"} & set(env):
        yield Finding(
            "leftover-rank",
            "note",
            f"WORLD_SIZE={env['WORLD_SIZE']} is set without a rank",
            "Lightning overwrites it, but other libraries read it and assume a distributed run.",
            "Unset WORLD_SIZE, unless a launcher needs it.",
        )


def slurm(facts: Facts) -> Iterator[Finding]:
    """A SLURM job whose tasks and processes do not match."""
    env = facts.environment
    tasks = _integer(env, "SLURM_NTASKS")
    if tasks is None or env.get("SLURM_JOB_NAME") in ("bash", "interactive"):
        return  # Lightning does not treat an interactive shell as a task
    if "TORCHELASTIC_RUN_ID" in env:
        per_node = re.match(r"\d+", env.get("SLURM_STEP_TASKS_PER_NODE", ""))  # "2(x4)": two on each of four nodes
        if "SLURM_STEP_ID" in env and per_node is not None and int(per_node[0]) > 1:
            yield Finding(
                "slurm",
                "error",
                f"srun starts torchrun {per_node[0]} times on each node",
                "Each torchrun starts all ranks of the node. They use the same GPUs and ports.",
                "Start one torchrun per node: --ntasks-per-node=1.",
            )
        return
    if tasks > 1 and "SLURM_NTASKS_PER_NODE" not in env:
        yield Finding(
            "slurm",
            "error",
            f"the job has --ntasks={tasks} and no --ntasks-per-node",
            "Lightning refuses to start, since the number of ranks per node is unknown.",
            "Request --nodes and --ntasks-per-node, the latter equal to `devices`. If the tasks are not ranks, set "
            "LIGHTNING_PATCHES=default,slurm-only-below-srun.",
        )
    if tasks > 1 and "SLURM_STEP_ID" not in env:
        yield Finding(
            "slurm",
            "warning",
            f"the job has {tasks} tasks, and this process was not started with srun",
            "Lightning treats it as task 0 of the job, and waits for the other tasks, which never start.",
            "Start the script with `srun python train.py`. To train without srun in this shell, script or notebook, "
            "set LIGHTNING_PATCHES=default,slurm-only-below-srun.",
        )


def master_address(facts: Facts) -> Iterator[Finding]:
    """Ranks can't connect to ``MASTER_ADDR``, or this machine's name can't be resolved."""
    env = facts.environment
    address = env.get("MASTER_ADDR", "")
    if address and not facts.addresses.get(address, True):
        yield Finding(
            "master-address",
            "error",
            f"MASTER_ADDR={address} cannot be resolved on this machine",
            "Ranks connect to this address. They try for minutes, and then end with a timeout.",
            "Use an address that every node can resolve, or an IP address.",
        )
    if address in _LOOPBACK and _nodes(env) > 1:
        yield Finding(
            "master-address",
            "error",
            f"MASTER_ADDR={address}, and the job has {_nodes(env)} nodes",
            "On every node, this address means the node itself. So the ranks never connect, and the start hangs.",
            "Set MASTER_ADDR to the address of the first node, on all nodes.",
        )
    unresolved = [host for host, resolved in facts.addresses.items() if not resolved and host != address]
    if unresolved:
        yield Finding(
            "master-address",
            "warning",
            f"the name of this machine, {unresolved[0]}, cannot be resolved",
            "gloo and torchrun look the name up when they start. The look-up fails or takes a long time.",
            "Add the name to /etc/hosts, or set an interface in GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.",
        )


def master_port(facts: Facts) -> Iterator[Finding]:
    """``MASTER_PORT`` is in use."""
    env = facts.environment
    if not facts.busy_port or "TORCHELASTIC_RUN_ID" in env or _integer(env, "RANK") or _integer(env, "SLURM_PROCID"):
        return  # torchrun's agent holds the port; ranks other than 0 do not open it
    yield Finding(
        "master-port",
        "error",
        f"MASTER_PORT={env['MASTER_PORT']} is in use on this machine",
        'Rank 0 ends with "address already in use" and the others wait for it, or ranks of two runs connect.',
        "On one node, unset MASTER_PORT: Lightning finds a free port. Otherwise choose another port, or end the "
        "program that uses this one.",
    )


def network_interface(facts: Facts) -> Iterator[Finding]:
    """A variable names a network interface that this machine does not have."""
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = facts.environment.get(variable, "")
        if not value or value.startswith("^") or not facts.interfaces:
            continue
        names = [name.split(":")[0] for name in value.lstrip("=").split(",") if name]
        exact = value.startswith("=") or variable.startswith("GLOO")
        if not any(have == name if exact else have.startswith(name) for name in names for have in facts.interfaces):
            yield Finding(
                "network-interface",
                "error",
                f"{variable}={value}, and this machine has {', '.join(facts.interfaces)}",
                "The backend does not find the interface, and ends at start.",
                "Unset the variable, or set it to an interface that every node has.",
            )


def worker_start(facts: Facts) -> Iterator[Finding]:
    """The script's DataLoader workers do not start by fork, but the script needs fork."""
    fork = "Or pass multiprocessing_context='fork' to the DataLoader, which Windows does not have."
    for kind, line, text in facts.script:
        if kind == UNGUARDED:
            yield Finding(
                "worker-start",
                "error",
                f"the script trains without a `__main__` guard, and its {text} in line {line} has workers",
                "The workers start by spawn or forkserver (the default on macOS, on Windows, and from Python 3.14 on), "
                "and import the script. So each worker would also train, which Python refuses.",
                f'Put the training below `if __name__ == "__main__":`. {fork}',
            )
        elif kind == UNPICKLABLE:
            yield Finding(
                "worker-start",
                "error",
                f"the DataLoader in line {line} cannot start its workers: {text}",
                "The workers start by spawn or forkserver (the default on macOS, on Windows, and from Python 3.14 on), "
                "and get functions and datasets pickled. Pickle needs definitions at the top level of a module.",
                f"Define it at the top level of a module. {fork}",
            )


def silent_failures(facts: Facts) -> Iterator[Finding]:
    """Settings that make the other ranks hang if one rank fails."""
    env = facts.environment
    for variable in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"):
        if env.get(variable) == "0":
            yield Finding(
                "silent-failures",
                "warning",
                f"{variable}=0",
                "When a rank fails or a collective times out, the other ranks hang.",
                f"Unset {variable}.",
            )
    if env.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        yield Finding(
            "silent-failures",
            "note",
            "CUDA_LAUNCH_BLOCKING is set",
            "The host waits for every kernel: training is slow, and collectives on several streams may deadlock.",
            "Unset CUDA_LAUNCH_BLOCKING after debugging.",
        )


def visible_devices(facts: Facts) -> Iterator[Finding]:
    """``CUDA_VISIBLE_DEVICES`` does not match the GPUs or the ranks of this node."""
    value = facts.environment.get("CUDA_VISIBLE_DEVICES")
    if value is None or not value.strip():
        return
    entries = [entry.strip() for entry in value.split(",")]
    unknown = [entry for entry in entries if entry.isdigit() and facts.gpus and int(entry) >= len(facts.gpus)]
    problems = [f"GPU {entry} does not exist" for entry in unknown]
    problems += [f"{entry} is listed twice" for entry in dict.fromkeys(entries) if entries.count(entry) > 1]
    ranks = _integer(facts.environment, "LOCAL_WORLD_SIZE")
    if ranks is not None and 1 < len(entries) < ranks:
        problems.append(f"{len(entries)} GPUs for {ranks} ranks")
    if problems:
        yield Finding(
            "visible-devices",
            "error",
            f"CUDA_VISIBLE_DEVICES={value}: {', '.join(problems)}",
            'CUDA ignores all entries from the first invalid one on. A rank without a GPU ends with "invalid device '
            'ordinal", and the others wait for it.',
            "List each GPU of this machine once, and at least one GPU per rank.",
        )


def shared_rendezvous(facts: Facts) -> Iterator[Finding]:
    """Ranks use a file on a network file system, or of an earlier run, to find each other."""
    path = rendezvous_file(facts.environment)
    if path and path in facts.network_paths:
        yield Finding(
            "shared-rendezvous",
            "error",
            f"torchrun's ranks use the file {path}, on {facts.network_paths[path]}, to find each other",
            "Such a file needs locks, and each rank must see the writes of others immediately. Network file systems "
            "do not guarantee this, so ranks sometimes hang at start.",
            "Use a TCP store: --rdzv-backend=c10d with --rdzv-endpoint=HOST:PORT.",
        )
    for kind, line, text in facts.script:
        if kind == "file-rendezvous":
            yield Finding(
                "shared-rendezvous",
                "warning",
                f"line {line} of the script may make ranks find each other through a file: {text}",
                "With a file on a network file system, ranks sometimes hang. With a file of an earlier run, they wait "
                "for the ranks of that run.",
                "Remove init_method (Lightning uses a TCP store), or use a new file on a local disk for each run.",
            )


def _nodes(env: Mapping[str, str]) -> int:
    nodes = _integer(env, "SLURM_NNODES") or _integer(env, "GROUP_WORLD_SIZE") or 0
    ranks, local = _integer(env, "WORLD_SIZE"), _integer(env, "LOCAL_WORLD_SIZE")
    if not nodes and ranks and local:
        nodes = -(-ranks // local)
    return nodes or 1


def _integer(env: Mapping[str, str], name: str) -> Optional[int]:
    value = env.get(name, "").strip()
    return int(value) if value.isdigit() else None


def hang_watch(facts: Facts) -> Iterator[Finding]:
    """Variables of the hang watch have invalid values, or values that do not work on this machine."""
    wrong = hang_settings.problems(facts.environment)
    if hang_files.VARIABLE in facts.unwritable:
        wrong.append(f"Files can't be created in {hang_files.VARIABLE}={facts.unwritable[hang_files.VARIABLE]}.")
    wrong += [f"The watch's port {port} {problem}." for port, problem in facts.hang_ports.items()]
    try:
        hang_settings.parse(facts.environment.get(hang_settings.VARIABLE, ""))
    except ValueError as error:
        wrong.append(str(error))
    if wrong:
        yield Finding(
            "hang-watch",
            "warning",
            " ".join(wrong),
            "The hang watch does not work as intended: if ranks hang, there may be no report.",
            f"Set {hang_settings.VARIABLE} to {hang_settings.FORMS}, and correct the other variables. For a port, set "
            f"{hang_secret.PORT_VARIABLE} to a free one that no firewall blocks, the same in all ranks.",
        )


CHECKS = (
    launcher_numbers,
    leftover_rank,
    slurm,
    master_address,
    master_port,
    network_interface,
    visible_devices,
    shared_rendezvous,
    silent_failures,
    worker_start,
    hang_watch,
)
