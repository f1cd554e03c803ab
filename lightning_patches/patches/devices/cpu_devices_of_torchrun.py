"""On CPUs, devices="auto" is the number of processes that torchrun has started on the node."""

import os
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.devices._torchrun import is_on_cpu_under_torchrun

_NAMES = ("auto", "ddp", "ddp_find_unused_parameters_false", "ddp_find_unused_parameters_true")


def _build(package: str) -> Callable[..., Any]:
    def build(original: Callable[[Any], None], namespace: str) -> Callable[[Any], None]:
        def is_ddp(strategy: Any) -> bool:
            ddp = upstream_module(namespace, f"{package}.strategies.ddp").DDPStrategy
            return strategy in _NAMES or (type(strategy) is ddp and strategy._start_method == "popen")

        def _set_devices_flag_if_auto_passed(self: Any) -> None:
            was_auto = self._devices_flag == "auto" and self._cluster_environment_flag is None
            original(self)
            if not (was_auto and self._devices_flag == 1 and is_on_cpu_under_torchrun(self, package, namespace)):
                return
            processes, all_processes = (int(os.environ.get(name, 1)) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
            if processes * self._num_nodes_flag == all_processes and is_ddp(self._strategy_flag):
                self._devices_flag = processes

        return _set_devices_flag_if_auto_passed

    return build


_METHOD = "_set_devices_flag_if_auto_passed"
PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "the processes of torchrun train one model, each on its part of the data"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector.{_METHOD}", _build("pytorch")),
        Target(f"fabric.connector:_Connector.{_METHOD}", _build("fabric")),
    ),
    impact=Impact(
        "Under torchrun, each process of a Trainer or Fabric on CPUs with devices='auto' trains alone, on all data, or "
        "is refused from 2.1.0 on with strategy='ddp'. On GPUs, the same arguments train with DDP.",
        ("torchrun on CPU trains the model several times, with world_size 1",),
    ),
    opt_in="users who train on CPUs with torchrun and leave the number of devices to Lightning",
    signs=("TORCHELASTIC_RUN_ID",),
    note="Equivalent to devices=N with torchrun --nproc_per_node=N. Opt-in because programs create a Trainer under "
    "torchrun that works in one process on purpose, such as for an evaluation in rank zero. With the patch it would "
    "wait for the other processes. With several nodes, num_nodes is still needed, as on GPUs. Strategies other than "
    "'auto' and DDP are unchanged.",
)
