"""FSDP counts the ranks of all nodes."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _lazy_init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _lazy_init_strategy(self: Any) -> None:
        fsdp = upstream_module(namespace, "pytorch.strategies").FSDPStrategy
        # FSDP does not read _num_nodes.
        if isinstance(self.strategy, fsdp) and vars(self.strategy).get("num_nodes") == 1:
            self.strategy.num_nodes = self._num_nodes_flag
        original(self)

    return _lazy_init_strategy


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect(
        "numbers", "under FSDP on several nodes, all nodes train one model, each with its share of the data"
    ),
    affected=(">=2.0.0,<2.0.2",),
    targets=(
        Target(
            "pytorch.trainer.connectors.accelerator_connector:_AcceleratorConnector._lazy_init_strategy", _lazy_init
        ),
    ),
    upstream=Upstream(pull_requests=(17438,), commit="2e5a7f9cf5", fixed_in="2.0.2"),
    impact=Impact(
        "With FSDP and Trainer(num_nodes=2), the strategy assumes one node: world size, ranks and each rank's "
        "share of the data are wrong.",
        ("FSDPStrategy.num_nodes is 1 on several nodes", "world_size is that of one node with FSDP"),
    ),
    note="Without the patch, set trainer.strategy.num_nodes = 2 before fit.",
)
