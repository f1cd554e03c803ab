"""Each rank chooses its GPU before it joins the process group."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _setup_environment(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_environment(self: Any) -> None:
        # The accelerator's setup_device() is called later and does the rest. set_device() does not open a context.
        device = self.root_device
        if device.type == "cuda":
            import torch

            torch.cuda.set_device(device)
        original(self)

    return setup_environment


PATCH = Patch(
    group="hang",
    affected=(">=2.0.0,<2.2.0",),
    targets=(
        Target("fabric.strategies.ddp:DDPStrategy.setup_environment", _setup_environment),
        Target("fabric.strategies.fsdp:FSDPStrategy.setup_environment", _setup_environment),
        Target("pytorch.strategies.ddp:DDPStrategy.setup_environment", _setup_environment),
        Target("pytorch.strategies.fsdp:FSDPStrategy.setup_environment", _setup_environment),
    ),
    upstream=Upstream(
        pull_requests=(19184,),
        commit="c3e2ba52ca",
        fixed_in="2.2.0",
        tests=("tests/tests_pytorch/strategies/test_deepspeed.py",),
    ),
    impact=Impact(
        "While the process group is created, the current device of every rank is GPU 0. So each rank opens a "
        "context there, which takes a few hundred MB of its memory, and NCCL may use GPU 0 instead of the "
        "rank's GPU.",
        ("every rank has a process on GPU 0", "out of memory on GPU 0 only", "Duplicate GPU detected"),
    ),
    opt_in="users who train on several GPUs of a node and run out of memory on the first one",
    note="Opt-in because code that expects GPU 0 as the current device at startup finds the rank's GPU instead.",
    around=("process-group-device-id",),
)
