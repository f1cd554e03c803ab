"""Reductions, clipping, inputs, epochs and dtypes in Fabric are those of plain PyTorch."""

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _all_reduce(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def all_reduce(self: Any, data: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        import numpy
        import torch

        is_mean = str(reduce_op).lower().rpartition(".")[2] in ("mean", "avg")

        def reduce(value: Any) -> Any:
            exact = value
            if isinstance(value, (bool, int, float)):
                dtype = torch.float64 if is_mean or isinstance(value, float) else torch.int64
                exact = torch.tensor(value, dtype=dtype, device=self.device)
            elif isinstance(value, torch.Tensor) and is_mean and not value.is_floating_point() | value.is_complex():
                exact = value.double()
            result = original(self, exact, group, reduce_op)
            if isinstance(value, torch.Tensor) and result is not value:
                value.detach().copy_(result)
            return result

        if self.device.type == "mps":  # it has no float64
            return original(self, data, group, reduce_op)
        apply = stock_of(original).__globals__["apply_to_collection"]
        return apply(data, (bool, int, float, torch.Tensor, numpy.ndarray), reduce)

    return all_reduce


def _clip(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def clip(self: Any, module: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        mine = {id(parameter) for parameter in module.parameters()}

        def main_params(optimizer: Any) -> Any:
            return [parameter for parameter in self.precision.main_params(optimizer) if id(parameter) in mine]

        precision = SimpleNamespace(unscale_gradients=self.precision.unscale_gradients, main_params=main_params)
        return original(SimpleNamespace(precision=precision), module, optimizer, *args, **kwargs)

    return clip


def _convert_input(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def convert_input(self: Any, data: Any) -> Any:
        return data  # autocast converts what needs it

    return convert_input


def _iter(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __iter__(self: Any) -> Any:  # noqa: N807
        batches = getattr(self._dataloader, "batch_sampler", None)
        for sampler in (getattr(self._dataloader, "sampler", None), getattr(batches, "sampler", None)):
            epoch = getattr(sampler, "epoch", None)
            if isinstance(epoch, int) and epoch != max(self._num_iter_calls - 1, 0):
                self._num_iter_calls = epoch  # the program has set it
                break
        return original(self)

    return __iter__


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        import torch

        original(self, *args, **kwargs)
        module = self._original_module
        dtypes = (getattr(module, "dtype", None), *(p.dtype for p in module.parameters() if p.is_floating_point()))
        dtypes = tuple(dtype for dtype in dtypes if isinstance(dtype, torch.dtype))
        self.__dict__["_dtype"] = dtypes[0] if dtypes else self._dtype

    return __init__


_STRATEGY = "fabric.strategies.strategy:Strategy"
_WRAPPERS = "fabric.wrappers"

PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "exact reductions, other clipped parameters, inputs that are not rounded"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("fabric.fabric:Fabric.all_reduce", _all_reduce),
        Target(f"{_STRATEGY}.clip_gradients_norm", _clip),
        Target(f"{_STRATEGY}.clip_gradients_value", _clip),
        Target("fabric.plugins.precision.amp:MixedPrecision.convert_input", _convert_input),
        Target(f"{_WRAPPERS}:_FabricDataLoader.__iter__", _iter),
        Target(f"{_WRAPPERS}:_FabricModule.__init__", _init),
    ),
    upstream=Upstream(issues=(21530,)),
    impact=Impact(
        "Fabric computes other values than plain PyTorch: `all_reduce` truncates means of integers and reduces Python "
        "numbers in 32 bits, `clip_gradients` clips all parameters of the optimizer, mixed precisions round all inputs "
        "to 16 bits, and data loaders overwrite the epoch of `sampler.set_epoch`.",
    ),
    opt_in="users who port a loop from plain PyTorch to Fabric",
    note="Opt-in because programs that end well compute other numbers. Means of integers have the type float64. The "
    "precision's `convert_input` converts nothing, so inputs of type float64 are refused by a float32 layer, as "
    "under `torch.autocast`. `dtype` of the wrapper is that of the module.",
    added="0.3.0",
    after=("fabric-compiled-module", "fabric-containers", "fabric-submodule-sync", "init-module-data"),
)
