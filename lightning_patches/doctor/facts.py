"""What the checks are told of the machine, and how it is found out."""

from __future__ import annotations

import errno
import importlib.machinery
import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from lightning_patches.ranks import nvml
from lightning_patches.ranks.hang import _files as hang_files
from lightning_patches.ranks.hang import _identity, _secret
from lightning_patches.ranks.hang import _settings as hang_settings

TORCH_TIMEOUT = 90.0
"""Seconds that torch may take to be imported and to say what it is."""
_TOOL_TIMEOUT = 20.0
_PORT_TIMEOUT = 3.0

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
    """An installed Lightning: distribution, version, whether it is a compromised release, what is to be said of it."""

    distribution: str
    version: str
    forbidden: bool = False
    note: str = ""


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


def gather(
    ask_torch: bool = True,
    script: tuple[tuple[str, int, str], ...] = (),
    torch_timeout: float = TORCH_TIMEOUT,
    autostart: bool = False,
) -> Facts:
    """Find out about this machine. Never raises: what cannot be found out is named in ``unknown``.

    Args:
        ask_torch: start a Python that imports torch, which takes some seconds.
        script: what :func:`lightning_patches.doctor.script.look_through` has found.
        torch_timeout: seconds that this Python may take.
        autostart: programs of this environment look at ``LIGHTNING_PATCHES`` when they start.
    """
    unknown: list[Unknown] = []
    environment = dict(os.environ)
    gpus, driver, driver_cuda = _gpus(unknown)
    packages = {name: version for name in PACKAGES if (version := _version(name))}
    pinned = _pinned()
    shm = _shm()
    limits = _limits()
    return Facts(
        environment=environment,
        lightnings=_lightnings(),
        packages=packages,
        torch=_torch(unknown, torch_timeout) if ask_torch and "torch" in packages else None,
        pinned=pinned,
        pinned_installed={name: version for name in pinned if (version := _version(name))},
        has_pkg_resources=importlib.machinery.PathFinder.find_spec("pkg_resources") is not None,
        autostart=autostart,
        gpus=gpus,
        driver=driver,
        driver_cuda=driver_cuda,
        iommu=_iommu(),
        infiniband=bool(_listed("/sys/class/infiniband")),
        foreign_nccl=_foreign_nccl(environment),
        shm_bytes=shm[0],
        shm_free_bytes=shm[1],
        open_files=limits[0],
        locked_memory_bytes=limits[1],
        interfaces=_listed("/sys/class/net"),
        addresses=_addresses(environment),
        busy_port=_is_busy(environment.get("MASTER_PORT", "")),
        network_paths=_network_paths(environment),
        unwritable=_unwritable(environment),
        hang_ports=_hang_ports(environment),
        script=script,
        unknown=tuple(unknown),
    )


# -------------------------------------------------------------------- packages


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution) or ""
    except importlib.metadata.PackageNotFoundError:
        return ""


def _lightnings() -> tuple[Lightning, ...]:
    from lightning_patches.engine.installed import find_installed

    return tuple(Lightning(one.distribution, one.version, one.forbidden, one.note) for one in find_installed())


def _pinned() -> dict[str, str]:
    """The NVIDIA packages that torch's wheel asks for in one version."""
    try:
        required = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"(nvidia-[\w-]+)(?:\[[^\]]*\])?\s*\(?==\s*([\w.]+)", line) for line in required)
    return {match[1]: match[2] for match in found if match is not None}


_QUESTIONS = """
import sys
sys.path[:] = filter(None, sys.path)  # -c puts the current directory there
import json, warnings
import torch
facts = {"version": torch.__version__, "cuda": torch.version.cuda, "initialized_by_import": False}
facts["initialized_by_import"] = bool(torch.cuda.is_initialized())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        facts["cuda_available"] = torch.cuda.is_available()
        if torch.version.cuda and not facts["cuda_available"]:
            torch.cuda.init()
    except Exception as error:
        facts["cuda_error"] = str(error).splitlines()[0] if str(error) else type(error).__name__
if not facts.get("cuda_error") and caught:
    facts["cuda_error"] = str(caught[-1].message).splitlines()[0]
if facts.get("cuda_available"):
    facts["devices"] = count = torch.cuda.device_count()
    facts["architectures"] = torch.cuda.get_arch_list()
    try:
        facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        facts["no_peer_access"] = [
            [a, b] for a in range(count) for b in range(a + 1, count)
            if not torch.cuda.can_device_access_peer(a, b)
        ]
    except Exception as error:
        facts["cuda_error"] = str(error).splitlines()[0]
print("\\nLIGHTNING-PATCHES " + json.dumps(facts))
"""


def _torch(unknown: list[Unknown], timeout: float) -> Optional[Torch]:
    """Ask a separate Python. It runs without the launcher's variables: it is not a rank of anything."""
    launcher = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    variables = {name: value for name, value in os.environ.items() if name not in launcher}
    variables["LIGHTNING_PATCHES"] = "off"
    # A file, not a pipe: a process that torch's import may leave behind would keep a pipe open past the time limit.
    with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _QUESTIONS],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            unknown.append(Unknown("torch", f"did not answer within {timeout:.0f} s"))
            return None
        except OSError as error:
            unknown.append(Unknown("torch", str(error)))
            return None
        output.seek(0)
        text = output.read()
    answers = [line for line in text.splitlines() if line.startswith("LIGHTNING-PATCHES ")]
    if not answers:
        last = text.strip().splitlines()[-1:] or ["nothing"]
        unknown.append(Unknown("torch", f"import ended with status {done.returncode}, and said {last[0]!r}"))
        return None
    answer: dict[str, Any] = json.loads(answers[-1].partition(" ")[2])
    answer["architectures"] = tuple(answer.get("architectures", ()))
    answer["no_peer_access"] = tuple((first, second) for first, second in answer.get("no_peer_access", ()))
    return Torch(**answer)


# -------------------------------------------------------------------- GPUs


def _gpus(unknown: list[Unknown]) -> tuple[tuple[Gpu, ...], str, Optional[tuple[int, int]]]:
    """From NVML where its library is, from ``nvidia-smi`` elsewhere. Neither creates a context on a GPU."""
    for ask in (_ask_nvml, _ask_smi):
        try:
            found = ask()
        except Exception as error:
            unknown.append(Unknown(f"GPUs ({ask.__name__.rpartition('_')[2]})", str(error)))
            continue
        if found is not None:
            return found
    return (), "", None


def _ask_nvml() -> Optional[tuple[tuple[Gpu, ...], str, Optional[tuple[int, int]]]]:
    try:
        library = nvml.Library()
    except OSError:
        return None
    with library:
        driver, driver_cuda = library.versions()
        gpus = []
        for device in library.devices():
            if device.error is not None:
                raise device.error
            total, used = device.total or 0, device.used or 0
            gpus.append(
                Gpu(
                    device.index,
                    device.name,
                    total >> 20,
                    used >> 20,
                    device.capability,
                    exclusive=bool(device.compute_mode),
                )
            )
        return tuple(gpus), driver, driver_cuda


def _ask_smi() -> Optional[tuple[tuple[Gpu, ...], str, Optional[tuple[int, int]]]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = "--query-gpu=index,name,memory.total,memory.used,compute_cap,compute_mode,driver_version"
    lines = _output_of([program, query, "--format=csv,noheader,nounits"]).splitlines()
    gpus, driver = [], ""
    for line in filter(str.strip, lines):
        index, name, total, used, capability, mode, driver = (cell.strip() for cell in line.split(","))
        parsed = re.fullmatch(r"(\d+)\.(\d+)", capability)
        gpus.append(
            Gpu(
                int(index),
                name,
                int(total) if total.isdigit() else 0,
                int(used) if used.isdigit() else 0,
                (int(parsed[1]), int(parsed[2])) if parsed else None,
                exclusive=mode != "Default",
            )
        )
    cuda = re.search(r"CUDA Version:\s*(\d+)\.(\d+)", _output_of([program]))
    return tuple(gpus), driver, (int(cuda[1]), int(cuda[2])) if cuda else None


def _output_of(command: list[str]) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TOOL_TIMEOUT, check=False
    )
    if done.returncode:
        raise OSError((done.stdout + done.stderr).strip() or f"ended with status {done.returncode}")
    return done.stdout


def _iommu() -> bool:
    try:
        with open("/proc/cmdline", encoding="utf-8") as file:
            words = file.read().split()
    except OSError:
        return False
    passes_through = "iommu=pt" in words or "iommu=off" in words
    return not passes_through and bool(_listed("/sys/class/iommu"))


def _foreign_nccl(environment: dict[str, str]) -> tuple[str, ...]:
    found = [path for path in re.split(r"[:\s]+", environment.get("LD_PRELOAD", "")) if "libnccl.so" in path]
    for directory in environment.get("LD_LIBRARY_PATH", "").split(":"):
        if directory:
            found += [os.path.join(directory, name) for name in _listed(directory) if name.startswith("libnccl.so")]
    return tuple(found)


# -------------------------------------------------------------------- memory, limits, network, files


def _shm() -> tuple[Optional[int], int]:
    if not sys.platform.startswith("linux"):
        return Facts.shm_bytes, Facts.shm_free_bytes  # only Linux has it
    try:
        usage = shutil.disk_usage("/dev/shm")
    except OSError:
        return None, 0
    return usage.total, usage.free


def _limits() -> tuple[int, int]:
    try:
        import resource
    except ImportError:  # Windows, which has no such limits
        return Facts.open_files, Facts.locked_memory_bytes
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    unlimited = resource.RLIM_INFINITY
    return (1 << 30 if files == unlimited else files), (-1 if locked == unlimited else locked)


def _listed(directory: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(directory)))
    except OSError:
        return ()


def _addresses(environment: dict[str, str]) -> dict[str, bool]:
    hosts = [socket.gethostname(), environment.get("MASTER_ADDR", "")]
    found = {}
    for host in filter(None, hosts):
        try:
            socket.getaddrinfo(host, None)
        except (OSError, UnicodeError):
            found[host] = False
        else:
            found[host] = True
    return found


def _is_busy(port: str) -> bool:
    if not port.isdigit() or not 0 < int(port) < 65536:
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as torch's store does
        try:
            probe.bind(("", int(port)))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _unwritable(environment: dict[str, str]) -> dict[str, str]:
    """Directories that variables name and in which no file can be made. The watch's may be missing: it makes it."""
    found = {}
    for variable in ("TMPDIR", "HOME", hang_files.VARIABLE):
        path = environment.get(variable, "")
        there = os.path.abspath(path)
        while variable == hang_files.VARIABLE and not os.path.lexists(there):  # the watch makes it
            there = os.path.dirname(there)
        if path and not (os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)):
            found[variable] = path
    return found


def _hang_ports(environment: dict[str, str]) -> dict[str, str]:
    """What is wrong with the port that rank zero's watch listens on, if it is known and there are several nodes.

    A port that nobody listens on yet refuses at once: one that does not answer at all is blocked by a firewall.
    """
    identity = _identity.find([])
    secret = _secret.of_user()
    if not environment.get(hang_settings.VARIABLE) or identity is None or identity.one_node:
        return {}
    ports = [_secret.port_of_user()] if secret is None else _secret.ports(secret, identity)
    found = {}
    for port in filter(None, ports):
        if identity.node == 0:
            if _is_busy(str(port)):
                found[f"{identity.address}:{port}"] = "is in use on this machine"
        elif identity.address:
            try:
                socket.create_connection((identity.address, port), timeout=_PORT_TIMEOUT).close()
            except ConnectionRefusedError:
                pass
            except (OSError, UnicodeError) as error:
                said = (
                    "no answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
                )
                found[f"{identity.address}:{port}"] = f"can't be reached from this node: {said}"
    return found if len(found) == len(ports) else {}  # one is enough


_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|gpfs|beegfs\w*|ceph|afs|9p|glusterfs|fuse\.(?!overlay|lxcfs).*|wekafs"
)


def file_system(path: str) -> str:
    """Type of the file system that ``path`` is on, ``"ext4"``; "" if it cannot be told."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                _, mount, this_kind, *_rest = line.split()
                mount = mount.replace("\\040", " ")
                if (real + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best):
                    best, kind = mount, this_kind
    except (OSError, ValueError):
        return ""
    return kind


def rendezvous_file(environment: dict[str, str]) -> str:
    """The file through which torchrun's ranks are to find each other, "" if it is not a file."""
    if "store_type=file" not in environment.get("PET_RDZV_CONF", "").replace(" ", ""):
        return ""
    return environment.get("PET_RDZV_ENDPOINT", "")


def _network_paths(environment: dict[str, str]) -> dict[str, str]:
    paths = [tempfile.gettempdir(), rendezvous_file(environment)]
    kinds = {path: file_system(path) for path in paths if path}
    return {path: kind for path, kind in kinds.items() if _NETWORK.fullmatch(kind)}
