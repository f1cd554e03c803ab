"""Warn when each process of torchrun trains alone on its CPU."""

import os
from typing import Any, Callable

from lightning_patches.patch import Target
from lightning_patches.patches._warning import observe, warn, warning
from lightning_patches.patches.devices import cpu_devices_of_torchrun
from lightning_patches.patches.devices._torchrun import is_on_cpu_under_torchrun


def _build(package: str) -> Callable[..., Any]:
    def build(original: Callable[[Any], None], namespace: str) -> Callable[[Any], None]:
        def after(was_auto: bool, _: None, self: Any) -> None:
            processes = os.environ.get("WORLD_SIZE", "1")
            is_alone = was_auto and processes != "1" and self._devices_flag == 1 and self._num_nodes_flag == 1
            if is_alone and is_on_cpu_under_torchrun(self, package, namespace):
                warn(
                    "cpu-alone-under-torchrun",
                    f"Each of the {processes} processes that torchrun has started works alone, on all data: on CPUs, "
                    "devices='auto' is 1. If they should train together, pass devices=N, the number of processes per "
                    "node, and num_nodes. If not, pass devices=1.",
                )

        return observe(original, before=_is_auto, after=after)

    return build


def _is_auto(connector: Any) -> bool:
    return bool(connector._devices_flag == "auto" and connector._strategy_flag == "auto")


_METHOD = "_set_devices_flag_if_auto_passed"
PATCH = warning(
    Target(f"pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector.{_METHOD}", _build("pytorch")),
    Target(f"fabric.connector:_Connector.{_METHOD}", _build("fabric")),
    fixes=(cpu_devices_of_torchrun,),
    added="0.3.0",
    note="With strategy='ddp', Lightning raises an error from 2.1.0 on. Pass the number of devices in both cases.",
)
