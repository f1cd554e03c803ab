"""Data made or drawn inside init_module works as it does outside.

The block makes the accelerator the default device of everything, and torch's own samplers cannot live with that: they
seed a generator on the CPU and then draw a permutation wherever the default says. Two things are done about it, both
only while a block is open. A draw with an explicit generator happens on that generator's device. And when Lightning
starts a DataLoader, what belongs to the loader itself (its seed, its worker processes, the indices of torch's own
samplers) is done on the CPU, as it is outside of the block. What the user wrote, dataset, collate function or sampler,
keeps the block's default device in this process.
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
"""Types of device between which a draw with the other one's generator is always an error."""


class _Blocks(threading.local):
    """The open blocks of this thread; default devices are a thread's own, too."""

    names: tuple[str, ...] = ()
    drawing = False


_blocks = _Blocks()


# ------------------------------------------------------------------ the block


def _init_block(name: str) -> Callable[[Any, str], Callable[..., Any]]:
    def build(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
        def init_block(self: Any, *args: Any, **kwargs: Any) -> Any:
            return _Block(original(self, *args, **kwargs), name)

        return init_block

    return build


class _Block(contextlib.ContextDecorator):
    """The original's block, with all that it can be: a decorator, entered more than once, or an ExitStack."""

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
        """For ``ContextDecorator``: each call of a decorated function opens a block of its own."""
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
    """``block`` with our mode as the innermost one. A block that leaves the default device alone stays as it is."""
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
    """The device of this thread's innermost ``with torch.device(...)`` or of ``torch.set_default_device``."""
    import torch

    # Neither exists in torch 1.x, which has no default devices: Lightning leaves everything on the CPU there.
    device_context = getattr(sys.modules.get("torch.utils._device"), "DeviceContext", None)
    modes = getattr(torch.overrides, "_get_current_function_mode_stack", None)
    if device_context is not None and modes is not None:
        for mode in reversed(modes()):
            if isinstance(mode, device_context):
                return mode.device
    return torch.device("cpu")


@lru_cache(maxsize=None)
def _generator_mode() -> Any:
    """The mode's class, made when the first block opens: nothing here imports torch before that."""
    import torch
    from torch.overrides import TorchFunctionMode

    factories = {torch.rand, torch.randn, torch.randint, torch.randperm}

    class DrawWhereTheGeneratorIs(TorchFunctionMode):  # type: ignore[misc]
        """Draws on the generator's device where the default device is of another type, which could only fail."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            generator = kwargs.get("generator")
            if generator is not None and func in factories and kwargs.get("device") is None:
                here, there = generator.device, _default_device()
                if here.type != there.type and here.type in _DEVICES and there.type in _DEVICES:
                    kwargs = {**kwargs, "device": here}
            elif func is torch.multinomial and _blocks.drawing:
                # WeightedRandomSampler: its weights became a tensor when it was made, on the block's device.
                args = (args[0].to("cpu" if generator is None else generator.device), *args[1:])
            return func(*args, **kwargs)

    return DrawWhereTheGeneratorIs


# ------------------------------------------------------------------ loaders


def _starts_loaders(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    """For methods of ``_ModeIterator`` that call ``iter`` on the loaders in ``self.iterables``."""

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
    # The original starts the loader that it wraps when it is asked for the first batch.
    wrapped = loader._dataloader
    loader._dataloader = _Starter(wrapped)
    try:
        first = next(batches)
    except StopIteration:
        return
    finally:
        loader._dataloader = wrapped
    yield first
    del first  # one batch of device memory, for as long as the epoch lasts
    yield from batches


class _StandIn:
    """Looks like another object, but for what the subclass does differently."""

    def __init__(self, stands_for: Any) -> None:
        self._stands_for = stands_for

    def __getattr__(self, name: str) -> Any:
        if name == "_stands_for" or name.startswith("__"):
            raise AttributeError(name)  # copied or unpickled: asked before there is anything to look at
        return getattr(self._stands_for, name)

    def __len__(self) -> int:
        return len(self._stands_for)


class _Starter(_StandIn):
    """A loader, while Lightning calls ``iter`` on it in an open block."""

    def __iter__(self) -> Iterator[Any]:
        return _start(self._stands_for)


def _start(loader: Any) -> Iterator[Any]:
    """``iter(loader)``, with the loader's own work done on the CPU."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    device = _default_device()
    if not isinstance(loader, DataLoader) or device.type == "cpu" or not _blocks.names:
        return iter(loader)
    name = _blocks.names[-1]
    notices.warn_once(
        "init-module-data",
        f"A DataLoader was started inside of `{name}()`. That block is for creating the model: while it is open, every"
        " tensor is created on the accelerator, those of the data too, and worker processes cannot use data that is"
        " there. Create datasets, samplers and loaders, and fit, validate, test, predict or iterate, after the block.",
        stacklevel=5,
    )
    index_source = "sampler" if loader.batch_sampler is None else "batch_sampler"
    generator_device = getattr(loader.generator, "device", torch.device("cpu"))
    if (
        type(loader).__iter__ is not DataLoader.__iter__  # the user's own code, which expects the block's device
        or index_source not in vars(loader)
        or generator_device.type != "cpu"
        or (loader.num_workers == 0 and isinstance(loader.dataset, IterableDataset))  # would start the dataset, too
    ):
        return iter(loader)
    sampler = vars(loader)[index_source]
    draws_on = torch.device("cpu") if _is_known(sampler) else device
    # Past DataLoader.__setattr__, which lets nobody replace a sampler: the iterator keeps the stand-in, the loader not.
    vars(loader)[index_source] = _Indices(sampler, draws_on)
    try:
        with torch.device("cpu"):  # forked workers inherit it
            return iter(loader)
    finally:
        vars(loader)[index_source] = sampler


class _Indices(_StandIn):
    """A (batch) sampler that draws with ``device`` as default device, as long as a block is open."""

    def __init__(self, sampler: Any, device: Any) -> None:
        super().__init__(sampler)
        self._device = device

    def __iter__(self) -> Iterator[Any]:
        with self._drawing():
            indices = iter(self._stands_for)
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
        with self._device, _generator_mode()():  # a device that is entered last comes first: the mode goes before it
            _blocks.drawing = self._device.type == "cpu"
            try:
                yield
            finally:
                _blocks.drawing = before


def _is_known(sampler: Any) -> bool:
    """Whether a sampler consists of torch's and Lightning's own classes only, none of them subclassed."""
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
    name="init-module-data",
    title="Data made or drawn inside init_module works as it does outside",
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
        "A script that makes its data, or calls fit, inside `with trainer.init_module():` fails on a GPU in "
        "torch's samplers, at the first batch or before it.",
        ("Expected a 'cuda' device type for generator but found 'cpu'",),
        error="RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'",
        frames=("torch/utils/_device.py",),
        would_tell="whether data was made, or `fit` called, inside of `trainer.init_module()`",
    ),
    note="Tensors that the script creates inside the block are on the GPU, as the block promises, and forked "
    "workers cannot use those: with num_workers > 0 the dataset must not hold tensors made in there (CUDA's "
    "own error says so). A user's own sampler that draws without a generator draws from the GPU's random "
    "numbers inside the block; torch's own samplers draw from the CPU's, even where stock works with the GPU's "
    "(SubsetRandomSampler). None of this matters when the data is made after the block, as a warning says. "
    "Equivalent to the same script with its data made, and fit called, after the block. Who could rely on the "
    "old behaviour: Data that works inside the block, thanks to a generator on the GPU or a custom sampler, "
    "and blocks that are used as decorators or entered twice are as before. Only a SubsetRandomSampler without "
    "a generator draws other random numbers, the CPU's.",
)
