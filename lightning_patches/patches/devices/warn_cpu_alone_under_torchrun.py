"""Warn when each process of torchrun trains alone on its CPU."""

import os
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, name_and_title
from lightning_patches.patches.devices._torchrun import is_on_cpu_under_torchrun


def _build(package: str) -> Callable[..., Any]:
    def build(original: Callable[[Any], None], namespace: str) -> Callable[[Any], None]:
        def _set_devices_flag_if_auto_passed(self: Any) -> None:
            was_auto = self._devices_flag == "auto" and self._strategy_flag == "auto"
            original(self)
            if not (was_auto and self._devices_flag == 1 and self._num_nodes_flag == 1):
                return
            processes = os.environ.get("WORLD_SIZE", "1")
            if processes != "1" and is_on_cpu_under_torchrun(self, package, namespace):
                notices.warn_once(
                    "cpu-alone-under-torchrun",
                    f"Each of the {processes} processes that torchrun has started works alone, on all data: on CPUs, "
                    "devices='auto' is 1. If they should train together, pass devices=N, the number of processes per "
                    "node, and num_nodes. If not, pass devices=1.",
                )

        return _set_devices_flag_if_auto_passed

    return build


_METHOD = "_set_devices_flag_if_auto_passed"
PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector.{_METHOD}", _build("pytorch")),
        Target(f"fabric.connector:_Connector.{_METHOD}", _build("fabric")),
    ),
    impact=Impact(
        "Under torchrun, each process of a Trainer or Fabric on CPUs with devices='auto' and strategy='auto' trains "
        "alone, on all data. On GPUs, the same arguments train with DDP."
    ),
    after=("cpu-devices-of-torchrun",),
    fixed_by=("cpu-devices-of-torchrun",),
    note="This patch fixes nothing: it warns once. With strategy='ddp', Lightning raises an error from 2.1.0 on. Pass "
    "the number of devices in both cases. The opt-in patch cpu-devices-of-torchrun does the same.",
)
