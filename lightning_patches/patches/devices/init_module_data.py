"""Data that is created or sampled inside init_module works as it does outside.

The block makes the accelerator the default device. torch's samplers then fail, because they seed a generator on the CPU
and draw a permutation on the default device. The patch changes two things while a block is open. A draw with an
explicit generator runs on the generator's device. And when Lightning starts a DataLoader, the loader's own work (its
seed, its worker processes, the indices of torch's samplers) runs on the CPU, as it does outside the block. The user's
code (dataset, collate function or sampler) keeps the block's default device in this process.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from functools import lru_cache
from typing import Any, Callable, Iterator

from lightning_patches import notices
from lightning_patches.engine.distributions import ROOT_PACKAGES
from lightning_patches.patch import Impact, Patch, Target, Upstream

_COMBINED = "pytorch.utilities.combined_loader"


_DEVICES = frozenset({"cpu", "cuda", "mps"})
"""Device types for which a draw with a generator of another type is always an error."""


class _Blocks(threading.local):
    """The open blocks of this thread. Default devices are thread-local, too."""

    names: tuple[str, ...] = ()
    drawing = False


_blocks = _Blocks()


def _init_block(name: str) -> Callable[[Any, str], Callable[..., Any]]:
    def build(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
        def init_block(self: Any, *args: Any, **kwargs: Any) -> Any:
            return _Block(original(self, *args, **kwargs), name)

        return init_block

    return build


class _Block(contextlib.ContextDecorator):
    """A wrapper of the original block. It also works as a decorator, when it is entered again, and in an ExitStack."""

    def __init__(self, block: Any, name: str) -> None:
        self._block, self._name = block, name
        self._entered: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._block, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._block)  # for isinstance

    def _recreate_cm(self) -> _Block:
        """Return a new block for each call of a decorated function (see ``ContextDecorator``)."""
        recreate = getattr(self._block, "_recreate_cm", None)
        return self if recreate is None else _Block(recreate(), self._name)

    def __enter__(self) -> Any:
        opened = _opened(self._block, self._name)
        value = opened.__enter__()
        self._entered.append(opened)
        return value

    def __exit__(self, *error: Any) -> Any:
        return self._entered.pop().__exit__(*error)


@contextlib.contextmanager
def _opened(block: Any, name: str) -> Iterator[Any]:
    """Open ``block`` with our function mode as the innermost one, if the block changes the default device."""
    with block as value:
        if _default_device().type not in _DEVICES - {"cpu"}:
            yield value
            return
        outer = _blocks.names
        with _generator_mode()():
            _blocks.names = (*outer, name)
            try:
                yield value
            finally:
                _blocks.names = outer


def _default_device() -> Any:
    """Return the device of this thread's innermost ``with torch.device(...)`` or of ``torch.set_default_device``."""
    import torch

    # torch 1.x has no default devices, so Lightning leaves everything on the CPU.
    device_context = getattr(sys.modules.get("torch.utils._device"), "DeviceContext", None)
    modes = getattr(torch.overrides, "_get_current_function_mode_stack", None)
    if device_context is not None and modes is not None:
        for mode in reversed(modes()):
            if isinstance(mode, device_context):
                return mode.device
    return torch.device("cpu")


@lru_cache(maxsize=None)
def _generator_mode() -> Any:
    """Create the mode's class when the first block opens, so that importing this module does not import torch."""
    import torch
    from torch.overrides import TorchFunctionMode

    factories = {torch.rand, torch.randn, torch.randint, torch.randperm}

    class DrawWhereTheGeneratorIs(TorchFunctionMode):  # type: ignore[misc]
        """Draw on the generator's device if the default device has another type, which would fail."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            generator = kwargs.get("generator")
            if generator is not None and func in factories and kwargs.get("device") is None:
                here, there = generator.device, _default_device()
                if here.type != there.type and here.type in _DEVICES and there.type in _DEVICES:
                    kwargs = {**kwargs, "device": here}
            elif func is torch.multinomial and _blocks.drawing:
                # WeightedRandomSampler stores its weights as a tensor, which was created on the block's device.
                args = (args[0].to("cpu" if generator is None else generator.device), *args[1:])
            return func(*args, **kwargs)

    return DrawWhereTheGeneratorIs


def _starts_loaders(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    """Build methods of ``_ModeIterator`` that call ``iter`` on the loaders in ``self.iterables``."""

    def start(self: Any) -> Any:
        if not _blocks.names:
            return original(self)
        iterables = self.iterables
        self.iterables = [_Starter(iterable) for iterable in iterables]
        try:
            return original(self)
        finally:
            self.iterables = iterables

    return start


def _fabric_loader_iter(original: Callable[..., Iterator[Any]], namespace: str) -> Callable[..., Iterator[Any]]:
    def iterate(self: Any) -> Iterator[Any]:
        return _fabric_batches(original, self) if _blocks.names else original(self)

    return iterate


def _fabric_batches(original: Callable[..., Iterator[Any]], loader: Any) -> Iterator[Any]:
    batches = original(loader)
    # The original starts the wrapped loader at the first batch.
    wrapped = loader._dataloader
    loader._dataloader = _Starter(wrapped)
    try:
        first = next(batches)
    except StopIteration:
        return
    finally:
        loader._dataloader = wrapped
    yield first
    del first  # frees a batch of device memory during the epoch
    yield from batches


class _Proxy:
    """A proxy of another object; subclasses override single methods."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or name.startswith("__"):
            raise AttributeError(name)  # during copy or unpickling, before the attributes exist
        return getattr(self._wrapped, name)

    def __len__(self) -> int:
        return len(self._wrapped)


class _Starter(_Proxy):
    """A loader on which Lightning calls ``iter`` in an open block."""

    def __iter__(self) -> Iterator[Any]:
        return _start(self._wrapped)


def _start(loader: Any) -> Iterator[Any]:
    """Return ``iter(loader)``, with the loader's own work on the CPU."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    device = _default_device()
    if not isinstance(loader, DataLoader) or device.type == "cpu" or not _blocks.names:
        return iter(loader)
    name = _blocks.names[-1]
    notices.warn_once(
        "init-module-data",
        f"A DataLoader was started inside `{name}()`. Inside this block, which is for creating the model, every"
        " tensor is created on the accelerator, including those of the data, and worker processes cannot use such"
        " data. Create datasets, samplers and loaders, and fit, validate, test, predict or iterate, after the block.",
        stacklevel=5,
    )
    index_source = "sampler" if loader.batch_sampler is None else "batch_sampler"
    generator_device = getattr(loader.generator, "device", torch.device("cpu"))
    if (
        type(loader).__iter__ is not DataLoader.__iter__  # a user's method, which expects the block's device
        or index_source not in vars(loader)
        or generator_device.type != "cpu"
        or (loader.num_workers == 0 and isinstance(loader.dataset, IterableDataset))  # would also start the dataset
    ):
        return iter(loader)
    sampler = vars(loader)[index_source]
    draws_on = torch.device("cpu") if _is_known(sampler) else device
    # Bypasses DataLoader.__setattr__, which forbids new samplers. Only the iterator keeps the proxy, not the loader.
    vars(loader)[index_source] = _Indices(sampler, draws_on)
    try:
        with torch.device("cpu"):  # forked workers inherit it
            return iter(loader)
    finally:
        vars(loader)[index_source] = sampler


class _Indices(_Proxy):
    """A (batch) sampler that draws with ``device`` as default device while a block is open."""

    def __init__(self, sampler: Any, device: Any) -> None:
        super().__init__(sampler)
        self._device = device

    def __iter__(self) -> Iterator[Any]:
        with self._drawing():
            indices = iter(self._wrapped)
        return self._draw(indices)

    def _draw(self, indices: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._drawing():
                try:
                    index = next(indices)
                except StopIteration:
                    return
            yield index

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        if not _blocks.names:
            yield
            return
        before = _blocks.drawing
        with self._device, _generator_mode()():  # the device entered last takes precedence over the mode
            _blocks.drawing = self._device.type == "cpu"
            try:
                yield
            finally:
                _blocks.drawing = before


def _is_known(sampler: Any) -> bool:
    """True if a sampler consists only of classes of torch and Lightning, without subclasses."""
    from torch.utils import data
    from torch.utils.data.distributed import DistributedSampler

    kind = type(sampler)
    if kind in (data.SequentialSampler, data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler):
        return True
    if kind is data.BatchSampler:
        return _is_known(sampler.sampler)
    if kind is DistributedSampler:
        return True
    if kind.__module__.partition(".")[0] in ROOT_PACKAGES:
        if kind.__name__ == "UnrepeatedDistributedSampler":
            return True
        if kind.__name__ == "_IndexBatchSamplerWrapper":
            return _is_known(sampler._batch_sampler)
        if kind.__name__ in ("DistributedSamplerWrapper", "UnrepeatedDistributedSamplerWrapper"):
            return _is_known(sampler.dataset._sampler)
    return False


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.trainer:Trainer.init_module", _init_block("init_module")),
        Target(f"{_COMBINED}:_ModeIterator.__iter__", _starts_loaders),
        Target(f"{_COMBINED}:_Sequential._load_current_iterator", _starts_loaders),
        Target(f"{_COMBINED}:_MaxSizeCycle.__next__", _starts_loaders),
        Target("fabric.fabric:Fabric.init_module", _init_block("init_module")),
        Target("fabric.fabric:Fabric.init_tensor", _init_block("init_tensor")),
        Target("fabric.wrappers:_FabricDataLoader.__iter__", _fabric_loader_iter),
    ),
    upstream=Upstream(issues=(19373,)),
    impact=Impact(
        "A script that creates its data, or calls fit, inside `with trainer.init_module():` fails on a GPU in "
        "one of torch's samplers, at the first batch or earlier.",
        ("Expected a 'cuda' device type for generator but found 'cpu'",),
        error="RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'",
        frames=("torch/utils/_device.py",),
        would_tell="if the script creates data or calls `fit` inside `trainer.init_module()`",
    ),
    note="Tensors that the script creates inside the block are on the GPU, and forked workers cannot use "
    "those: with num_workers > 0 the dataset must not contain such tensors, as CUDA's error states. A "
    "custom sampler without a generator uses the GPU's random numbers inside the block. torch's samplers "
    "use the CPU's; for a SubsetRandomSampler without a generator, which works without the patch, these "
    "are other numbers. One warning recommends creating the data after the block, which also works "
    "without the patch. Data with a generator on the GPU, and blocks that are used as decorators or "
    "entered twice, are unchanged.",
)
