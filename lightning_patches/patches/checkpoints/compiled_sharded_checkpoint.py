"""ModelParallelStrategy saves a model with compiled parts in a single file."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_COMPILED = "_orig_mod."


def _optimizer_state(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizer_state(self: Any, optimizer: Any) -> Any:
        names = {name.replace(_COMPILED, ""): name for name, _ in self.model.named_parameters()}
        if self._save_distributed_checkpoint or all(short == name for short, name in names.items()):
            return original(self, optimizer)
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
        from torch.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        found = get_optimizer_state_dict(self.model, getattr(optimizer, "_optimizer", optimizer), options=options)
        if self.global_rank != 0:
            return found
        # torch removes the prefixes of compiled parts from the names, and then looks up the original names.
        groups = [
            {**group, "params": [names.get(one, one) for one in group["params"]]} for group in found["param_groups"]
        ]
        state = {names.get(one, one): value for one, value in found["state"].items()}
        found = {**found, "state": state, "param_groups": groups}
        return FullyShardedDataParallel.rekey_optim_state_dict(found, OptimStateKeyType.PARAM_ID, self.model)

    return optimizer_state


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.3.0,<2.6.1",),
    targets=(Target("pytorch.strategies.model_parallel:ModelParallelStrategy.optimizer_state", _optimizer_state),),
    upstream=Upstream(issues=(21357,), pull_requests=(21384,), commit="28f18dcc4e", fixed_in="2.6.1"),
    impact=Impact(
        "ModelParallelStrategy(save_distributed_checkpoint=False) raises a KeyError that names a parameter "
        "when it saves a model with parts compiled by torch.compile.",
        ("KeyError when saving a compiled model with ModelParallelStrategy",),
    ),
)
