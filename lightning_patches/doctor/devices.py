"""Query torch and the driver, in separate processes and without a CUDA context."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Optional

from lightning_patches.doctor.facts import Gpu, Torch, Unknown
from lightning_patches.ranks import nvml
from lightning_patches.system import python_command

TORCH_TIMEOUT = 90.0
"""Time limit for the import of torch and the query, in seconds."""

_QUERY = """
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


def ask_torch(unknown: list[Unknown], timeout: float) -> Optional[Torch]:
    """Query torch in a separate Python. The launcher's variables are removed, since this process is not a rank.

    Returns:
        The facts; ``None`` if torch can't be queried. Then the reason is added to ``unknown``.
    """
    launcher = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    variables = {name: value for name, value in os.environ.items() if name not in launcher}
    variables["LIGHTNING_PATCHES"] = "off"
    # Not a pipe: if the import of torch leaves a process behind, that process would keep the pipe open.
    with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
        try:
            done = subprocess.run(
                python_command("-c", _QUERY),
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
        last = text.strip().splitlines()[-1:] or [""]
        unknown.append(Unknown("torch", f"import ended with status {done.returncode}; its last line: {last[0]!r}"))
        return None
    answer: dict[str, Any] = json.loads(answers[-1].partition(" ")[2])
    answer["architectures"] = tuple(answer.get("architectures", ()))
    answer["no_peer_access"] = tuple((first, second) for first, second in answer.get("no_peer_access", ()))
    return Torch(**answer)


def ask_driver(unknown: list[Unknown]) -> tuple[tuple[Gpu, ...], str, Optional[tuple[int, int]]]:
    """Query the GPUs with NVML, which creates no CUDA context.

    Returns:
        The GPUs, the version of the driver, and the newest CUDA that it supports.
    """
    try:
        library = nvml.Library()
    except OSError:
        return (), "", None
    try:
        with library:
            driver, driver_cuda = library.versions()
            gpus = []
            for device in library.devices():
                if device.error is not None:
                    raise device.error
                total, used = device.total or 0, device.used or 0
                exclusive = bool(device.compute_mode)
                gpus.append(
                    Gpu(device.index, device.name, total >> 20, used >> 20, device.capability, exclusive=exclusive)
                )
            return tuple(gpus), driver, driver_cuda
    except Exception as error:
        unknown.append(Unknown("GPUs", str(error)))
        return (), "", None
