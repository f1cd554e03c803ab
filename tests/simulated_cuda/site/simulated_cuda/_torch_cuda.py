"""The Python side of ``torch.cuda``.

If possible, only functions of ``torch._C`` that a CPU build lacks are added, so that
torch's code in ``torch.cuda`` still does its checks and its lazy initialization.
"""

import os
import types

import torch
import torch.backends.cudnn
import torch.cuda

OPS = torch.ops.simulated_cuda
MEMORY_BYTES = 16 << 30


def install():
    """Make ``torch.cuda`` see the devices of the simulation."""
    _install_device_functions()
    _install_answers_about_the_hardware()
    _install_streams()
    _install_generators()
    _install_storage_functions()
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    if torch.cuda._initialized:
        OPS.mark_forked_after_use()
        torch.cuda._is_in_bad_fork = lambda: True


def _initialise():
    torch.cuda.default_generators = tuple(OPS.default_generator(index) for index in range(OPS.device_count()))


def _set_device(index):
    torch.cuda._lazy_init()
    OPS.set_device(index)


def _exchange_device(index):
    if index < 0:
        return -1
    previous = OPS.current_device()
    _set_device(index)
    return previous


def _maybe_exchange_device(index):  # torch.compile needs two different functions
    return _exchange_device(index)


def _install_device_functions():
    torch._C._cuda_init = _initialise
    torch._C._cuda_isInBadFork = lambda: torch.cuda._is_in_bad_fork()
    torch._C._cuda_getDeviceCount = OPS.device_count
    torch._C._cuda_getDevice = OPS.current_device
    torch._C._cuda_setDevice = _set_device
    torch._C._cuda_exchangeDevice = _exchange_device
    torch._C._cuda_maybeExchangeDevice = _maybe_exchange_device
    torch.cuda._exchange_device = _exchange_device
    torch.cuda._maybe_exchange_device = _maybe_exchange_device
    # don't query a real driver on this machine
    torch.cuda._device_count_nvml = lambda: -1
    torch.cuda._nvml_based_avail = lambda: False


def _device_properties(index):
    return types.SimpleNamespace(
        name="Simulated GPU", major=7, minor=0, total_memory=MEMORY_BYTES, multi_processor_count=1, warp_size=32,
        is_integrated=False, is_multi_gpu_board=False,
    )  # fmt: skip


def _nothing(*args, **kwargs):
    return None


def _install_answers_about_the_hardware():
    # torch only needs it to be there
    torch.cuda._cudart = types.SimpleNamespace(cudaMemGetInfo=lambda index: (MEMORY_BYTES, MEMORY_BYTES))
    torch.cuda._get_device_properties = _device_properties
    torch.cuda.is_bf16_supported = lambda including_emulation=True: including_emulation
    torch.backends.cudnn.is_acceptable = lambda tensor: False

    torch._C._cuda_synchronize = _nothing
    torch._C._cuda_emptyCache = _nothing
    torch._C._cuda_ipc_collect = _nothing
    torch._C._cuda_clearCublasWorkspaces = _nothing
    torch._C._cuda_getArchFlags = _nothing
    torch._C._cuda_memoryStats = lambda index: {}
    torch._C._cuda_resetPeakMemoryStats = _nothing
    torch._C._cuda_resetAccumulatedMemoryStats = _nothing
    torch._C._cuda_canDeviceAccessPeer = lambda index, peer: True


class Stream(torch.Stream):
    """``torch.cuda.Stream``: work is done immediately, so a stream has only an identity."""

    cuda_stream = 0

    def __new__(cls, device=None, priority=0, **kwargs):
        if kwargs:
            return super().__new__(cls, **kwargs)
        index = torch.cuda._utils._get_device_index(device, optional=True)
        return super().__new__(cls, torch.device("cuda", index), priority=priority)


class _CudaEvents(type):
    def __instancecheck__(cls, candidate):
        return isinstance(candidate, torch.Event) and candidate.device.type == "cuda"


class Event(metaclass=_CudaEvents):
    """``torch.cuda.Event``: knows the time at which it was recorded.

    Makes objects of the base class, because torch.Event compares times only with that.
    """

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        return torch.Event(torch.device("cuda"), enable_timing=enable_timing)


def _as_cuda_stream(stream):
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def _current_stream(device=None):
    torch.cuda._lazy_init()
    index = torch.cuda._utils._get_device_index(device, optional=True)
    return _as_cuda_stream(torch._C._accelerator_getStream(index))


def _default_stream(device=None):
    torch.cuda._lazy_init()
    index = torch.cuda._utils._get_device_index(device, optional=True)
    kind = torch._C._accelerator_getStream(index).device_type
    return Stream(stream_id=0, device_index=index, device_type=kind)


def _set_stream(stream):
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def _install_streams():
    torch.cuda.Stream = torch.cuda.streams.Stream = Stream
    torch.cuda.Event = torch.cuda.streams.Event = Event
    torch.cuda.current_stream = _current_stream
    torch.cuda.default_stream = _default_stream
    torch.cuda.set_stream = _set_stream
    torch._C._cuda_getCurrentRawStream = lambda index: 0

    torch._C._cuda_isCurrentStreamCapturing = lambda: False
    torch.cuda.graphs._cuda_isCurrentStreamCapturing = lambda: False


class _Generators(type):
    def __instancecheck__(cls, candidate):
        return isinstance(candidate, torch._C.Generator)


class Generator(metaclass=_Generators):
    """``torch.Generator`` for CPU builds of torch that refuse to create one for cuda (seen with 2.6)."""

    def __new__(cls, device="cpu"):
        device = torch.device(device)
        if device.type != "cuda":
            return torch._C.Generator(device)
        torch.cuda._lazy_init()
        return OPS.new_generator(-1 if device.index is None else device.index)


def _install_generators():
    try:
        torch.Generator("cuda")
    except RuntimeError:
        torch.Generator = Generator


def _install_storage_functions():
    """Add functions to create and resize a cuda storage, which CPU builds lack."""
    new = torch.UntypedStorage.__new__
    resize = torch.UntypedStorage.resize_

    def storage_new(cls, *args, device=None, **kwargs):
        if device is not None and torch.device(device).type == "cuda":
            size = args[0] if args else 0
            return torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()
        if device is not None:
            kwargs["device"] = device
        return new(cls, *args, **kwargs)

    def storage_resize(self, size):
        if self.device.type != "cuda":
            return resize(self, size)
        view = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
        OPS.resize_storage(view, size)
        return self

    torch.UntypedStorage.__new__ = storage_new
    torch.UntypedStorage.resize_ = storage_resize
