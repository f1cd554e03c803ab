"""Builds the C++ part with the system's compiler, keeps it, and loads it."""

import contextlib
import ctypes
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = (HERE / "device.cpp", HERE / "nccl.cpp")
FLAGS = ("-shared", "-fPIC", "-O1", "-std=c++20", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO")


def load(torch_folder):
    """Load the library for the torch in ``torch_folder``, building it if necessary.

    Must happen before torch is imported. Raises ImportError with a reason.
    """
    torch_folder = pathlib.Path(torch_folder)
    if not sys.platform.startswith("linux"):
        raise ImportError(f"simulated_cuda works on Linux only, not on {sys.platform}")
    if (torch_folder / "lib" / "libtorch_cuda.so").exists():
        raise ImportError("simulated_cuda needs the CPU build of torch; this one has CUDA")
    # torch opens this library privately; ours needs its symbols to be visible
    own = torch_folder / "lib" / "libtorch_cpu.so"
    ctypes.CDLL(str(own) if own.exists() else own.name, mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library_file(torch_folder)), mode=ctypes.RTLD_GLOBAL)


def library_file(torch_folder):
    """Path of the built library; builds it on first use, once for all processes of a user."""
    folder = cache_folder()
    target = folder / library_name(torch_folder)
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
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
    # renamed when complete, so that nobody ever loads half a library
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    command = [
        compiler,
        *FLAGS,
        f"-I{torch_folder}/include",
        f"-I{torch_folder}/include/torch/csrc/api/include",
        *map(str, SOURCES),
        "-o",
        str(unfinished),
        f"-L{torch_folder}/lib",
        "-lc10",
        "-ltorch_cpu",
    ]
    print("simulated_cuda: compiling, once (about half a minute)", file=sys.stderr, flush=True)
    try:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise ImportError(
                f"simulated_cuda could not be compiled: {compiler} ended with status "
                f"{result.returncode}\n{' '.join(command)}\n{result.stdout}{result.stderr}"
            )
        os.replace(unfinished, target)
    except OSError as error:
        raise ImportError(
            f"simulated_cuda could not be compiled: the C++ compiler {compiler!r} cannot be run "
            f"({error}). Install g++ or name another compiler in CXX."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
