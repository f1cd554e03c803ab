"""Builds the C++ part with the system's compiler, keeps it, and loads it."""

import contextlib
import ctypes
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = (HERE / "device.cpp", HERE / "nccl.cpp")
FLAGS = ("-shared", "-fPIC", "-O1", "-std=c++20", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO")


def obstacle(torch_folder):
    """Return why the device can't be used with the torch in ``torch_folder``, and what to do; "" if it can."""
    if not sys.platform.startswith("linux"):
        return f"The simulated GPUs need Linux, and this is {sys.platform}."
    if (pathlib.Path(torch_folder) / "lib" / "libtorch_cuda.so").exists():
        return (
            "The simulated GPUs need torch's build for CPUs, and this one is for CUDA. "
            "Remove .venv/ and give --torch-index URL of an index that has torch for CPUs."
        )
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None and not library_path(torch_folder).exists():
        return f"The simulated GPUs need a C++ compiler. Install {compiler}, or name another one in CXX."
    return ""


def load(torch_folder):
    """Load the library for the torch in ``torch_folder``, building it if necessary.

    Must happen before torch is imported. Raises ImportError with a reason.
    """
    torch_folder = pathlib.Path(torch_folder)
    reason = obstacle(torch_folder)
    if reason:
        raise ImportError(reason)
    # torch opens this library privately; ours needs its symbols to be visible
    own = torch_folder / "lib" / "libtorch_cpu.so"
    ctypes.CDLL(str(own) if own.exists() else own.name, mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library_file(torch_folder)), mode=ctypes.RTLD_GLOBAL)


def library_path(torch_folder):
    return cache_folder() / library_name(torch_folder)


def library_file(torch_folder):
    """Path of the built library; builds it on first use, once for all processes of a user."""
    target = library_path(torch_folder)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(target.with_suffix(".lock")):
        if not target.exists():  # another process may have built it while this one waited
            compile_to(target, torch_folder)
    return target


def cache_folder():
    chosen = os.environ.get("LIGHTNING_PATCHES_TEST_CACHE")
    return pathlib.Path(chosen or "~/.cache/lightning-patches-tests").expanduser()


def library_name(torch_folder):
    """A name that changes with torch's version, the sources and the flags."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in SOURCES:
        digest.update(source.read_bytes())
    return f"simulated_cuda-torch-{torch_version(torch_folder)}-{digest.hexdigest()[:16]}.so"


def torch_version(torch_folder):
    # torch cannot be imported yet, and its metadata may belong to another copy of it
    namespace = {}
    exec((pathlib.Path(torch_folder) / "version.py").read_text(), namespace)
    return namespace["__version__"]


@contextlib.contextmanager
def exclusive(lock_file):
    import fcntl

    with open(lock_file, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # given back by the system if this process dies
        yield


def compile_to(target, torch_folder):
    compiler = os.environ.get("CXX", "g++")
    # renamed when complete, so that no process loads an incomplete library
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    command = [
        compiler, *FLAGS, f"-I{torch_folder}/include", f"-I{torch_folder}/include/torch/csrc/api/include",
        *map(str, SOURCES), "-o", str(unfinished), f"-L{torch_folder}/lib", "-lc10", "-ltorch_cpu",
    ]  # fmt: skip
    print("simulated_cuda: compiling, once (about half a minute)", file=sys.stderr, flush=True)
    try:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise ImportError(
                f"simulated_cuda could not be compiled: {compiler} ended with status "
                f"{result.returncode}\n{' '.join(command)}\n{result.stdout}{result.stderr}"
            )
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
