"""Bindings to NVIDIA's management library (NVML), which needs no CUDA context."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Iterator, Optional


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class NvmlError(OSError):
    """An NVML call failed; ``status`` is NVML's return code."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} failed with NVML error {status}")
        self.status = status


@dataclass(frozen=True)
class Device:
    """A GPU; sizes in bytes. Values that the driver does not provide are ``None``; all of them if there is an error."""

    index: int
    name: str = ""
    total: Optional[int] = None
    used: Optional[int] = None
    busy: Optional[int] = None
    capability: Optional[tuple[int, int]] = None
    compute_mode: Optional[int] = None
    error: Optional[NvmlError] = None


class Library:
    """The initialized library.

    Raises:
        OSError: the library is missing, or can't be initialized.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")

    def __enter__(self) -> Library:
        self.call("nvmlInit_v2")
        return self

    def __exit__(self, *_: object) -> None:
        self._library.nvmlShutdown()

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise NvmlError(name, status)

    def versions(self) -> tuple[str, tuple[int, int]]:
        """Return the driver's version, and the newest CUDA version that it supports."""
        text, number = ctypes.create_string_buffer(96), ctypes.c_int()
        self.call("nvmlSystemGetDriverVersion", text, len(text))
        self.call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(number))
        return text.value.decode(), (number.value // 1000, number.value % 1000 // 10)

    def devices(self) -> Iterator[Device]:
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            try:
                self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            except NvmlError as error:
                yield Device(index, error=error)
                continue
            yield Device(index, **self._facts(handle))

    def _facts(self, handle: Any) -> dict[str, Any]:
        text, memory, usage = ctypes.create_string_buffer(96), _Memory(), _Utilization()
        mode, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        facts: dict[str, Any] = {}
        missing = (NvmlError, AttributeError)  # AttributeError: an older library
        with contextlib.suppress(*missing):
            self.call("nvmlDeviceGetName", handle, text, len(text))
            facts["name"] = text.value.decode(errors="replace")
        with contextlib.suppress(*missing):
            self.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
            facts.update(total=memory.total, used=memory.used)
        with contextlib.suppress(*missing):
            self.call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(usage))
            facts["busy"] = usage.gpu
        with contextlib.suppress(*missing):
            self.call("nvmlDeviceGetCudaComputeCapability", handle, ctypes.byref(major), ctypes.byref(minor))
            facts["capability"] = (major.value, minor.value)
        with contextlib.suppress(*missing):
            self.call("nvmlDeviceGetComputeMode", handle, ctypes.byref(mode))
            facts["compute_mode"] = mode.value
        return facts
