"""Collect the facts about this machine that the checks read."""

from __future__ import annotations

import errno
import importlib.machinery
import importlib.metadata
import os
import re
import shutil
import socket
import sys
import tempfile
from typing import Iterator, Optional

from lightning_patches import system
from lightning_patches.doctor import devices
from lightning_patches.doctor.facts import (
    IMPORTED_AT_ONCE,
    PACKAGES,
    Facts,
    Lightning,
    Missing,
    Unknown,
    rendezvous_file,
)
from lightning_patches.ranks.hang import _files as hang_files
from lightning_patches.ranks.hang import _identity, _secret
from lightning_patches.ranks.hang import _settings as hang_settings

_PORT_TIMEOUT = 3.0


def gather(
    ask_torch: bool = True,
    script: tuple[tuple[str, int, str], ...] = (),
    torch_timeout: float = devices.TORCH_TIMEOUT,
    autostart: bool = False,
) -> Facts:
    """Collect the facts about this machine. Never raises: ``unknown`` of the result lists facts that were not found.

    Args:
        ask_torch: start a Python that imports torch, which takes a few seconds.
        script: the result of :func:`lightning_patches.doctor.script.look_through`.
        torch_timeout: time limit for this Python, in seconds.
        autostart: True if autostart is enabled in this environment.
    """
    unknown: list[Unknown] = []
    environment = dict(os.environ)
    gpus, driver, driver_cuda = devices.ask_driver(unknown)
    packages = {name: version for name in PACKAGES if (version := _version(name))}
    lightnings = _lightnings()
    pinned = _pinned()
    shm = _shm()
    limits = _limits()
    return Facts(
        environment=environment,
        lightnings=lightnings,
        packages=packages,
        torch=devices.ask_torch(unknown, torch_timeout) if ask_torch and "torch" in packages else None,
        missing=_missing(lightnings),
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


def _version(distribution: str) -> str:
    version = system.installed_version(distribution)
    return version if version != "unknown" else ""


def _requires(distribution: str) -> Optional[list[str]]:
    """Return the requirements in a distribution's metadata, or ``None`` if the metadata can't be read."""
    try:
        return importlib.metadata.requires(distribution) or []
    except Exception:  # metadata that is incomplete, or not UTF-8, raises errors of several types
        return None


def _lightnings() -> tuple[Lightning, ...]:
    from lightning_patches.known.installed import find_installed

    return tuple(
        Lightning(one.distribution, one.version, one.forbidden, one.note, one.broken) for one in find_installed()
    )


_MODULES = {"pyyaml": "yaml"}
"""Package -> module, if their names differ. Used only for packages without metadata."""


def _missing(lightnings: tuple[Lightning, ...]) -> tuple[Missing, ...]:
    """Return the packages that an installed Lightning requires, and that are not installed.

    A package counts as installed if it has metadata or its module is found.
    """
    found: dict[str, Missing] = {}
    for one in lightnings:
        for name, requirement in _required(one.distribution):
            module = _MODULES.get(name, name.replace("-", "_"))
            if not _version(name) and importlib.machinery.PathFinder.find_spec(module) is None:
                found.setdefault(name, Missing(name, requirement, f"{one.distribution} {one.version}"))
    return tuple(found.values())


def _required(distribution: str) -> Iterator[tuple[str, str]]:
    """Yield name and requirement of the packages that a distribution of Lightning requires, without extras.

    Other distributions of Lightning are left out. For a distribution without metadata (a source tree on
    ``PYTHONPATH``), yields the packages that every release imports.
    """
    from packaging.markers import InvalidMarker, Marker

    lines = _requires(distribution)
    if lines is None:
        lines = list(IMPORTED_AT_ONCE)
    for line in lines:
        requirement, _, marker = line.partition(";")
        requirement = re.sub(r"[\s()]", "", requirement)
        name = re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
        try:
            applies = not marker or Marker(marker).evaluate({"extra": ""})
        except InvalidMarker:
            continue
        if applies and name not in ("lightning", "pytorch-lightning", "lightning-fabric"):
            yield name, requirement


def _pinned() -> dict[str, str]:
    """Return the NVIDIA packages that torch's wheel pins, with their versions."""
    required = _requires("torch") or []
    found = (re.match(r"(nvidia-[\w-]+)(?:\[[^\]]*\])?\s*\(?==\s*([\w.]+)", line) for line in required)
    return {match[1]: match[2] for match in found if match is not None}


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


def _shm() -> tuple[Optional[int], int]:
    if not sys.platform.startswith("linux"):
        return Facts.shm_bytes, Facts.shm_free_bytes  # only Linux has /dev/shm
    try:
        usage = shutil.disk_usage("/dev/shm")
    except OSError:
        return None, 0
    return usage.total, usage.free


def _limits() -> tuple[int, int]:
    try:
        import resource
    except ImportError:  # Windows has no such limits
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
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # torch's store also sets this
        try:
            probe.bind(("", int(port)))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _unwritable(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables whose directory can't be written to, with the directory."""
    found = {}
    for variable in ("TMPDIR", "HOME", hang_files.VARIABLE):
        path = environment.get(variable, "")
        existing = os.path.abspath(path)
        while variable == hang_files.VARIABLE and not os.path.lexists(existing):  # the watch creates the directory
            existing = os.path.dirname(existing)
        if path and not (os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK)):
            found[variable] = path
    return found


def _hang_ports(environment: dict[str, str]) -> dict[str, str]:
    """Return problems of the ports on which rank zero's watch may listen, if they are known and there are several
    nodes.

    A closed port refuses a connection immediately, which is no problem. If a port does not answer, a firewall blocks
    it.
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
                reason = (
                    "no answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
                )
                found[f"{identity.address}:{port}"] = f"can't be reached from this node: {reason}"
    return found if len(found) == len(ports) else {}  # one usable port is enough


_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|gpfs|beegfs\w*|ceph|afs|9p|glusterfs|fuse\.(?!overlay|lxcfs).*|wekafs"
)


def file_system(path: str) -> str:
    """Return the type of the file system of ``path``, such as ``"ext4"``, or ""."""
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


def _network_paths(environment: dict[str, str]) -> dict[str, str]:
    paths = [tempfile.gettempdir(), rendezvous_file(environment)]
    kinds = {path: file_system(path) for path in paths if path}
    return {path: kind for path, kind in kinds.items() if _NETWORK.fullmatch(kind)}
