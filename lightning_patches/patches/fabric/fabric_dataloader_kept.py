"""Fabric does not recreate a DataLoader if it does not replace the sampler."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title


def _setup_dataloader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _setup_dataloader(
        self: Any, dataloader: Any, use_distributed_sampler: bool = True, move_to_device: bool = True
    ) -> Any:
        if use_distributed_sampler and self._requires_distributed_sampler(dataloader):
            return original(self, dataloader, use_distributed_sampler, move_to_device)
        names = vars(upstream_module(namespace, "fabric.fabric"))
        names["_auto_add_worker_init_fn"](dataloader, self.global_rank)
        dataloader = self._strategy.process_dataloader(dataloader)
        moves = move_to_device and not isinstance(self._strategy, names["XLAStrategy"])
        return names["_FabricDataLoader"](dataloader=dataloader, device=self.device if moves else None)

    return _setup_dataloader


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "a loader of a class of the program's own keeps its arguments"),
    affected=(">=2.0.0,<2.1.0",),
    targets=(Target("fabric.fabric:Fabric._setup_dataloader", _setup_dataloader),),
    upstream=Upstream(
        pull_requests=(18191,),
        commit="74dfd88090",
        fixed_in="2.1.0",
        tests=("tests/tests_fabric/test_fabric.py::test_setup_dataloaders_raises_for_unknown_custom_args",),
    ),
    impact=Impact(
        "On one device, too, fabric.setup_dataloaders makes another DataLoader of the same class. A class with "
        "arguments of its own is refused, or gets the copy with their defaults, and nothing says so.",
        (
            "Trying to inject custom `Sampler` into the `...` instance",
            "setup_dataloaders loses arguments of a custom DataLoader",
        ),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: Trying to inject custom `Sampler` "
        "into the `...` instance. ...",
    ),
    note="Where each rank gets its share of the data, the loader is made anew, as before and in later releases. Who "
    "could rely on the copy: a program that changes its own loader after setup_dataloaders, which from 2.1.0 on "
    "changes what Fabric goes through.",
)
