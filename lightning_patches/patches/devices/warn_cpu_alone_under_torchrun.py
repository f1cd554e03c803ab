"""Warn when each process of torchrun trains alone on its CPU."""

from __future__ import annotations

import os
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _build(package: str) -> Callable[..., Any]:
    def build(original: Callable[[Any], None], namespace: str) -> Callable[[Any], None]:
        def _set_devices_flag_if_auto_passed(self: Any) -> None:
            was_auto = self._devices_flag == "auto" and self._strategy_flag == "auto"
            original(self)
            if not (was_auto and self._devices_flag == 1 and self._num_nodes_flag == 1):
                return
            cpu = upstream_module(namespace, f"{package}.accelerators.cpu").CPUAccelerator
            elastic = upstream_module(namespace, "fabric.plugins.environments.torchelastic").TorchElasticEnvironment
            processes = os.environ.get("WORLD_SIZE", "1")
            if type(self.accelerator) is cpu and elastic.detect() and processes != "1":
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
    affected=(">=2.1.0,<=2.6.6",),
    targets=(
        Target(f"pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector.{_METHOD}", _build("pytorch")),
        Target(f"fabric.connector:_Connector.{_METHOD}", _build("fabric")),
    ),
    upstream=Upstream(),
    impact=Impact(
        "Under torchrun, each process of a Trainer or Fabric on CPUs with devices='auto' and strategy='auto' trains "
        "alone, on all data. On GPUs, the same arguments train with DDP.",
        ("torchrun on CPU trains the model several times, with world_size 1",),
    ),
    note="This patch fixes nothing: it warns once. With strategy='ddp', Lightning raises an error instead. Pass the "
    "number of devices in both cases.",
)
