"""The backend "nccl" of ``torch.distributed``, on top of gloo."""

import datetime

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

DEFAULT_TIMEOUT = datetime.timedelta(minutes=10)


def _create(store, rank, size, timeout):
    group = dist.ProcessGroup(store, rank, size)
    gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
    torch.ops.simulated_cuda.add_device_backend(group.boxed())
    return group._get_backend(torch.device("cuda"))


class _InstanceByName(type):
    def __instancecheck__(cls, candidate):
        is_backend = isinstance(candidate, torch._C._distributed_c10d.Backend)
        return is_backend and candidate.name() == "nccl"


class ProcessGroupNCCL(metaclass=_InstanceByName):
    """Replaces torch's NCCL class, and creates the simulation's backend."""

    class Options:
        """Accepts any option; only the timeout has an effect."""

        def __init__(self, is_high_priority_stream=False):
            self.is_high_priority_stream = is_high_priority_stream
            self._timeout = DEFAULT_TIMEOUT

    def __new__(cls, store, rank, size, options):
        return _create(store, rank, size, options._timeout)


def _of_cuda_tensors(initialise):
    """``cuda:gloo``, which two ranks on one card use, gets the simulation's backend, too: gloo of a CPU build takes a
    segmentation fault with cuda tensors."""

    def with_our_backend(self, backend):
        initialise(self, backend)
        if self.device_backend_map == {"cuda": "gloo"}:
            self.device_backend_map = {"cuda": "nccl"}

    return with_our_backend


def install():
    """Offer the backend under the name "nccl", and for cuda tensors alone as "cuda:gloo"."""
    if not dist.is_available() or c10d._NCCL_AVAILABLE:
        return
    c10d._NCCL_AVAILABLE = True
    c10d.BackendConfig.__init__ = _of_cuda_tensors(c10d.BackendConfig.__init__)
    c10d.ProcessGroupNCCL = dist.ProcessGroupNCCL = ProcessGroupNCCL
    c10d.default_pg_nccl_timeout = DEFAULT_TIMEOUT
    backend = torch._C._distributed_c10d.Backend
    if not hasattr(backend, "_shutdown"):  # an older torch takes it from NCCL's class, which CPU builds lack
        backend._shutdown = lambda self: None
    torch._C._nccl_version = lambda: (2 << 32) | (21 << 16) | 5
    torch._C._nccl_version_suffix = lambda: b""
