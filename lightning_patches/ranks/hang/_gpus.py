"""State of this node's GPUs, for a report."""

from __future__ import annotations

import threading
from typing import Iterator

from lightning_patches.ranks import nvml


def describe(timeout: float = 2.0) -> list[str]:
    """Return a line for each NVIDIA GPU of this node; empty without a driver.

    Args:
        timeout: seconds to wait for the driver. If it does not answer, the result is one line that states this.
    """
    lines: list[str] = []
    done = threading.Event()

    def ask() -> None:
        try:
            with nvml.Library() as library:
                lines.extend(_lines(library))
        except (OSError, AttributeError):
            pass
        done.set()

    threading.Thread(target=ask, name="lightning_patches nvml", daemon=True).start()
    return lines if done.wait(timeout) else ["the NVIDIA driver does not answer"]


def _lines(library: nvml.Library) -> Iterator[str]:
    for device in library.devices():
        if device.error is not None:
            yield f"GPU {device.index} is lost: NVML error {device.error.status}"
            continue
        parts = [f"GPU {device.index} {device.name}"]
        if device.busy is not None:
            parts.append(f"{device.busy} % busy")
        if device.total is not None and device.used is not None:
            parts.append(f"{device.used / 2**30:.1f} of {device.total / 2**30:.1f} GiB in use")
        yield ", ".join(parts)
