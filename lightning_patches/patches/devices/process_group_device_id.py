"""init_process_group receives the GPU of each rank."""

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
    """Return the GPU of the strategy that creates the group, which may differ from ``cuda:LOCAL_RANK``."""
    device: Any = getattr(strategy, "root_device", None)
    if device is None or device.type != "cuda" or device.index is None:
        return None
    return device


PATCH = Patch(
    group="hang",
    affected=(">=1.8.0,<2.5.5",),
    targets=(
        Target("fabric.utilities.distributed:_init_dist_connection", _init_dist_connection),
        Target("lite.utilities.distributed:_init_dist_connection", _init_dist_connection),
    ),
    witnesses=(
        "fabric.strategies.ddp:DDPStrategy._setup_distributed",
        "lite.strategies.ddp:DDPStrategy._setup_distributed",
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
        "NCCL guesses which GPU a rank uses. If ranks and GPUs are not numbered in the same way, a barrier can "
        "hang; torch 2.8 warns about this at each start.",
        (
            "barrier(): using the device under current context",
            "devices used by this process are currently unknown",
            "hangs in barrier",
        ),
        frames=(" in barrier",),
        would_tell="with LIGHTNING_PATCHES_HANG_TIMEOUT=300 which rank is missing, and its stack. Without "
        "a hang you can ignore the warning",
    ),
    opt_in="users who train with NCCL and number GPUs differently from ranks, or who get torch's warning",
    needs=(Need("torch.distributed:init_process_group", "device_id"),),
    note="Opt-in because with a device id torch creates the NCCL communicator immediately instead of in the "
    "first collective. This uses GPU memory and time earlier, and errors also occur earlier. Needs torch "
    "2.3. DeepSpeed and XLA, which create the group themselves, are unchanged.",
)
