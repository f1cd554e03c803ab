"""Fabric does not recreate a DataLoader if it does not replace the sampler."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _setup_dataloader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def setup(self: Any, dataloader: Any, replaces: bool, move_to_device: bool) -> Any:
        if replaces and self._requires_distributed_sampler(dataloader):
            return original(self, dataloader, replaces, move_to_device)
        names = vars(upstream_module(namespace, "fabric.fabric"))
        names["_auto_add_worker_init_fn"](dataloader, self.global_rank)
        dataloader = self._strategy.process_dataloader(dataloader)
        moves = move_to_device and not isinstance(self._strategy, names["XLAStrategy"])
        return names["_FabricDataLoader"](dataloader=dataloader, device=self.device if moves else None)

    def _setup(self: Any, dataloader: Any, use_distributed_sampler: bool = True, move_to_device: bool = True) -> Any:
        return setup(self, dataloader, use_distributed_sampler, move_to_device)

    def _setup_in_1x(self: Any, dataloader: Any, replace_sampler: bool = True, move_to_device: bool = True) -> Any:
        return setup(self, dataloader, replace_sampler, move_to_device)

    return _setup_in_1x if "replace_sampler" in stock_of(original).__code__.co_varnames else _setup


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "a loader of a custom class keeps its arguments"),
    affected=(">=1.9.0,<2.1.0",),
    targets=(Target("fabric.fabric:Fabric._setup_dataloader", _setup_dataloader),),
    upstream=Upstream(
        pull_requests=(18191,),
        commit="74dfd88090",
        fixed_in="2.1.0",
        tests=("tests/tests_fabric/test_fabric.py::test_setup_dataloaders_raises_for_unknown_custom_args",),
    ),
    impact=Impact(
        "fabric.setup_dataloaders creates a second DataLoader of the same class even on one device. If a "
        "custom class has additional arguments, Fabric refuses the loader, or the second one uses their "
        "defaults without a warning.",
        (
            "Trying to inject custom `Sampler` into the `...` instance",
            "setup_dataloaders loses arguments of a custom DataLoader",
        ),
        error="lightning.fabric.utilities.exceptions.MisconfigurationException: Trying to inject custom `Sampler` "
        "into the `...` instance. ...",
    ),
    note="If each rank gets a share of the data, the loader is still created again, as in later releases. If a "
    "program changes its loader after setup_dataloaders, it now changes the loader that Fabric uses, as "
    "from 2.1.0 on.",
)
