"""``fabric/utilities/distributed.py`` and the strategies: how a rank and its GPU join the process group."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.patch import Impact, Need, Patch, Target, Upstream


def _init_dist_connection(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def init_dist_connection(
        cluster_environment: Any,
        torch_distributed_backend: str,
        global_rank: Any = None,
        world_size: Any = None,
        **kwargs: Any,
    ) -> None:
        if "nccl" in torch_distributed_backend and "device_id" not in kwargs:
            frame = inspect.currentframe()
            caller = frame.f_back if frame is not None else None
            device = _root_device(caller.f_locals.get("self") if caller is not None else None)
            if device is not None:
                kwargs["device_id"] = device
        original(cluster_environment, torch_distributed_backend, global_rank, world_size, **kwargs)

    return init_dist_connection


def _root_device(strategy: Any) -> Any:
    """The GPU of the strategy that wants the group. Only the strategy knows: it need not be ``cuda:LOCAL_RANK``."""
    device: Any = getattr(strategy, "root_device", None)
    if device is None or device.type != "cuda" or device.index is None:
        return None
    return device


def _setup_environment(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_environment(self: Any) -> None:
        # The accelerator's setup_device() comes later and does the rest. Choosing the device opens no context.
        device = self.root_device
        if device.type == "cuda":
            import torch

            torch.cuda.set_device(device)
        original(self)

    return setup_environment


PATCHES = (
    Patch(
        name="process-group-device-id",
        title="The process group is told each rank's GPU",
        group="hang",
        affected=(">=2.0.0,<2.5.5",),
        targets=(Target("fabric.utilities.distributed:_init_dist_connection", _init_dist_connection),),
        witnesses=("fabric.strategies.ddp:DDPStrategy._setup_distributed",),
        needs=(Need("torch.distributed:init_process_group", "device_id"),),
        calls=(
            "fabric.strategies.ddp:DDPStrategy.root_device()",
            "pytorch.strategies.ddp:DDPStrategy.root_device()",
        ),
        upstream=Upstream(
            pull_requests=(21105,),
            commit="6fc44c9254",
            fixed_in="2.5.5",
            tests=(
                "tests/tests_fabric/strategies/test_ddp.py::test_device_id_passed_for_cuda_devices",
                "tests/tests_pytorch/strategies/test_ddp.py::test_device_id_passed_for_cuda_devices_pytorch",
            ),
        ),
        impact=Impact(
            "NCCL guesses which GPU a rank uses. Where ranks and GPUs are not numbered alike, a barrier can hang; "
            "torch 2.8 warns about it at each start.",
            (
                "barrier(): using the device under current context",
                "devices used by this process are currently unknown",
                "hangs in barrier",
            ),
        ),
        default=False,
        note="Opt-in: with a device id torch sets up the NCCL communicator at once rather than in the first "
        "collective, which takes GPU memory and time at another moment, and fails earlier where it fails. Needs torch "
        "2.3. DeepSpeed and XLA, which create the group themselves, are left alone.",
    ),
    Patch(
        name="first-context-on-own-gpu",
        title="Each rank chooses its GPU before it joins the process group",
        group="hang",
        affected=(">=2.0.0,<2.2.0",),
        targets=(
            Target("fabric.strategies.ddp:DDPStrategy.setup_environment", _setup_environment),
            Target("fabric.strategies.fsdp:FSDPStrategy.setup_environment", _setup_environment),
            Target("pytorch.strategies.ddp:DDPStrategy.setup_environment", _setup_environment),
            Target("pytorch.strategies.fsdp:FSDPStrategy.setup_environment", _setup_environment),
        ),
        calls=(
            "fabric.strategies.ddp:DDPStrategy.root_device()",
            "pytorch.strategies.ddp:DDPStrategy.root_device()",
        ),
        upstream=Upstream(
            pull_requests=(19184,),
            commit="c3e2ba52ca",
            fixed_in="2.2.0",
            tests=("tests/tests_pytorch/strategies/test_deepspeed.py",),
        ),
        impact=Impact(
            "While the process group is made, every rank's current device is GPU 0: each opens a context there, which "
            "takes a few hundred MB of its memory per rank, and NCCL may take GPU 0 for the rank's own.",
            ("every rank has a process on GPU 0", "out of memory on GPU 0 only", "Duplicate GPU detected"),
        ),
        default=False,
        note="Opt-in: code of your own that counts on GPU 0 being the current device at start-up sees another one.",
    ),
)
