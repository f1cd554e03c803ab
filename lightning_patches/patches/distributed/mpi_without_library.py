"""Lightning treats an mpi4py that cannot be imported as not installed."""

from typing import Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _detect(original: Callable[[], bool], namespace: str) -> Callable[[], bool]:
    def detect() -> bool:
        try:
            return original()
        except ImportError:  # the package is installed, but the MPI library is missing
            return False

    return detect


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<2.6.0",),
    targets=(Target("fabric.plugins.environments.mpi:MPIEnvironment.detect", _detect),),
    upstream=Upstream(pull_requests=(21353,), commit="8ac48431d9", fixed_in="2.6.0"),
    impact=Impact(
        "If mpi4py is installed without an MPI library, Trainer() and Fabric() raise an ImportError.",
        ("cannot import name 'MPI' from 'mpi4py'", "ImportError: libmpi.so..."),
        error="ImportError: libmpi.so.40: cannot open shared object file: No such file or directory",
    ),
)
