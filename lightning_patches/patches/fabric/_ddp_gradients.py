"""Average the gradients of submodules of a ``DistributedDataParallel`` module that are called directly.

DDP reduces gradients only in a backward whose forward went through DDP. A submodule that is accessed as an attribute or
item of Fabric's wrapper is called without DDP. :class:`GradientSync` records each submodule that is accessed this way.
It watches parameters, not calls: if a backward reaches *only* such submodules, and DDP did not reduce, it averages the
gradients in ``.grad`` at the end of the backward. If a backward reaches other parameters, the program bypassed DDP on
purpose, with ``.module`` or a reference from before the wrapping, and nothing is changed.

A rank may run such a backward alone, for a saliency map, and then discard the gradients. It must not wait for the other
ranks. So until one average showed that all ranks run these backwards, a backward of a program that trains through DDP
is averaged later: when the gradients are clipped or an optimizer steps, and only the gradients that are still there.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
import time
import weakref
from typing import Any, Callable, Iterable, Iterator, Optional

from lightning_patches import notices

BUCKET_BYTES = 25 * 1024 * 1024
"""Size of one collective in bytes, as in DDP."""

WARN_AFTER = 10.0
"""Seconds that a rank waits for the others before it prints a warning, or averages its first gradients later."""

_NONE, _DENSE, _SPARSE = 0, 1, 2
_SIGNATURE = 171
"""First number of the collective in :meth:`GradientSync._agree`.

A rank that runs another collective at that time sends another number.
"""
_live: weakref.WeakSet[GradientSync] = weakref.WeakSet()
_numbers = itertools.count()


def watch(module: Any) -> Optional[GradientSync]:
    """Return the object that synchronizes the gradients of a DDP module's submodules.

    Args:
        module: the strategy's wrapper of the user's module, possibly inside a ``torch.compile`` wrapper.

    Returns:
        ``None`` if DDP does not reduce the gradients (FSDP, DeepSpeed, one device), or :func:`cannot_watch`.
    """
    from torch.nn.parallel import DistributedDataParallel

    module = uncompiled(module)
    if not isinstance(module, DistributedDataParallel) or cannot_watch(module):
        return None
    return None if getattr(module, "_use_python_reducer", False) else GradientSync(module)


def cannot_watch(module: Any) -> bool:
    """True for a DDP module with torch older than 2.1, which has no hook for a completed gradient."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    is_ddp = isinstance(uncompiled(module), DistributedDataParallel)
    return is_ddp and not hasattr(torch.Tensor, "register_post_accumulate_grad_hook")


def average_before(optimizer: Any) -> None:
    """Average the gradients of an optimizer that were not averaged at the end of their backward."""
    for sync in list(_live):
        if sync._deferred:
            sync.average_deferred(optimizer)


class GradientSync:
    """Synchronizes the gradients of one DDP module.

    When the first submodule is accessed, each parameter that DDP reduces gets a hook. Nothing else is added to the
    user's modules. The hooks own this object, so it holds weak references to the parameters and DDP. When DDP's wrapper
    is freed, the hooks are removed.

    Args:
        ddp: the DDP module. With one rank no hooks are needed.
    """

    def __init__(self, ddp: Any) -> None:
        import torch

        ignored = ddp.parameters_to_ignore
        named = [(n, p) for n, p in ddp.module.named_parameters() if p.requires_grad and n not in ignored]
        if torch.distributed.get_world_size(ddp.process_group) == 1:
            named = []
        self._torch = torch
        self._module_name = type(uncompiled(ddp.module)).__name__
        self._names = [name.replace("_orig_mod.", "") for name, _ in named]
        self._children = {name.partition(".")[0] for name in self._names if "." in name}
        self._parameters = [weakref.ref(parameter) for _, parameter in named]
        self._index = {id(parameter): index for index, (_, parameter) in enumerate(named)}
        self._ddp = weakref.ref(ddp, _forgetter(self))

        self._parts: dict[int, weakref.ref[Any]] = {}  # modules and parameters that were accessed through the wrapper
        self._reached: set[int] = set()  # their parameters
        self._task: Optional[int] = None  # the running backward
        self._touched: list[int] = []  # parameters that it has reached
        self._unsynced: set[int] = set()  # parameters that backwards under no_backward_sync have reached
        self._ddp_is_next = False  # DDP's forward ran: its reducer handles the next backward
        self._ddp_ran = False  # without hooks, and may or may not handle the next backward
        self._ddp_task = 0  # while DDP's reducer handles a backward: the number of its autograd task plus one
        self._every_rank: Optional[bool] = None  # if all ranks run the backwards that bypass DDP; None if not known
        self._version: Optional[int] = None  # of the weights, at the first forward of DDP
        self._deferred: dict[int, int] = {}  # parameters whose gradients were not averaged yet, and these' versions
        self._number = next(_numbers)
        self._defer_hook: Any = None
        self._steps_hook: Any = None
        self._since_step = 0  # backwards that were averaged since an optimizer stepped
        self._uneven: set[int] = set()  # parameters with a warning: only some ranks have their gradient
        self._waiting: Optional[float] = None  # start time while this rank waits for others
        self._watched = self._warned = False
        self._handles: list[Any] = []
        self._shared = False
        for other in list(_live):
            if any(other._has(parameter) is not None for _, parameter in named):
                self._shared = other._shared = True
        _live.add(self)

    def __reduce__(self) -> Any:
        # A copy or pickle of the wrapper gets no GradientSync, since the copied parameters have no hooks.
        return type(None), ()

    def is_reached(self, part: Any) -> bool:
        known = self._parts.get(id(part))
        return known is not None and known() is part

    def reach(self, part: Any) -> None:
        """Record an attribute or item that was accessed through the wrapper."""
        if self.is_reached(part):
            return
        if isinstance(part, self._torch.nn.Module):
            parameters = list(part.parameters())
        elif isinstance(part, self._torch.nn.Parameter):
            parameters = [part]
        else:
            return
        self._parts[id(part)] = weakref.ref(part)
        reached = {index for index in map(self._has, parameters) if index is not None}
        if reached and not self._reached:
            if self._version is not None and self._is_trained():
                self._every_rank, self._ddp_ran = False, True
            for index, reference in enumerate(self._parameters):
                parameter = reference()
                if parameter is not None:
                    self._handles.append(self._hook(parameter, index))
        self._reached |= reached

    def after_forward(self) -> None:
        """Record that a forward went through DDP."""
        if self._torch.is_grad_enabled():
            ddp = self._ddp()
            if ddp is not None and ddp.require_backward_grad_sync:
                self._ddp_is_next = True
                if self._version is None:
                    self._version = self._weights_version()

    def _is_trained(self) -> bool:
        """True if a backward or an optimizer's step followed the first forward of DDP."""
        alive = [p for p in (reference() for reference in self._parameters) if p is not None]
        return any(p.grad is not None for p in alive) or self._weights_version() != self._version

    def _weights_version(self) -> int:
        return sum(p._version for p in (reference() for reference in self._parameters) if p is not None)

    # ---------------------------------------------------------------- during a backward

    def _hook(self, parameter: Any, index: int) -> Any:
        current_task = self._torch._C._current_graph_task_id
        touch = self._touched.append

        def on_gradient(_: Any) -> None:
            if self._ddp_task:
                return
            task = current_task()
            if task != self._task:
                self._begin(task)
            touch(index)

        return parameter.register_post_accumulate_grad_hook(on_gradient)

    def _begin(self, task: int) -> None:
        """Called when a backward reaches its first parameter."""
        self._task = task
        ddp = self._ddp() if self._ddp_is_next and not self._ddp_ran else None
        if ddp is not None and _runs_reducer(ddp):
            self._ddp_task = task + 1
        self._at_end(_End(self, task))

    def _at_end(self, callback: Callable[[], None]) -> None:
        self._torch.autograd.Variable._execution_engine.queue_callback(callback)

    def _on_end(self) -> None:
        """Run first at the end of a backward."""
        if self._ddp_ran:
            ddp, self._ddp_ran = self._ddp(), False
            self._ddp_is_next = ddp is not None and not _has_reduced(ddp)
            self._ddp_task = (self._task or 0) + 1 if self._ddp_is_next else 0
        if self._shared:
            self._claim()
        if self._ddp_task:
            self._at_end(self._follow)  # again, after DDP's work
        elif self._shared:
            self._at_end(self._settle)  # after the claims of other wrappers
        else:
            self._settle()

    def _claim(self) -> None:
        """Claim shared parameters from other wrappers if this DDP reduces them, now or after ``no_backward_sync``."""
        ddp = self._ddp()
        if self._ddp_task or (ddp is not None and not ddp.require_backward_grad_sync):
            self._take(range(len(self._parameters)))

    def _take(self, indices: Iterable[int]) -> None:
        mine = [self._parameters[index]() for index in indices]
        for other in list(_live):
            if other is not self and other._shared:
                theirs = {other._has(parameter) for parameter in mine}
                other._touched[:] = [touched for touched in other._touched if touched not in theirs]
                other._unsynced -= theirs
                other._drop_deferred(theirs)

    def _follow(self) -> None:
        """Run last at the end of a backward that DDP reduces."""
        self._ddp_task, self._task = 0, None
        self._touched.clear()
        ddp = self._ddp()
        if ddp is None:
            return
        if _has_reduced(ddp):
            self._ddp_is_next = False
            self._unsynced.clear()
            self._deferred.clear()  # DDP averaged the sum
            self._every_rank = bool(self._every_rank)

    def _settle(self) -> None:
        """Run last at the end of any other backward: reduce the gradients that DDP did not reduce."""
        self._task = None
        touched = set(self._touched)
        self._touched.clear()
        self._drop_deferred(touched)  # the last backward decides
        if not self._torch.distributed.is_initialized() or not touched <= self._reached:
            return
        ddp = self._ddp()
        if ddp is None or not _has_reduced(ddp):
            return
        if not ddp.require_backward_grad_sync:
            self._unsynced |= touched
        elif touched:
            touched |= self._unsynced
            self._unsynced.clear()
            if self._every_rank is None:
                self._every_rank = self._await_every_rank(ddp)
            if self._every_rank:
                self._synchronize(ddp, touched)
            else:
                self._defer(touched)

    # ---------------------------------------------------------------- averages after the backward

    def _await_every_rank(self, ddp: Any) -> bool:
        """Return True if all ranks run their first backward that bypasses DDP, within some seconds.

        All ranks get the same answer: the first one that gives up, or the last one that comes, writes it.
        """
        c10d = importlib.import_module("torch.distributed.distributed_c10d")
        key = f"fabric-submodule-sync/{self._module_name}/{self._number}"
        try:
            store = c10d._get_default_store()
            complete = store.add(key, 1) == self._torch.distributed.get_world_size(ddp.process_group)
            late = time.monotonic() + WARN_AFTER
            while not complete and time.monotonic() < late and not store.check([f"{key}/all"]):
                time.sleep(0.002)  # store.wait prints warnings after a timeout
            return bool(store.compare_set(f"{key}/all", "", "yes" if complete else "no") == b"yes")
        except (AttributeError, RuntimeError):  # a store without these operations
            return True

    def _defer(self, touched: set[int]) -> None:
        for index in touched:
            parameter = self._parameters[index]()
            if parameter is not None and parameter.grad is not None:
                self._deferred[index] = parameter.grad._version
        optimizers = importlib.import_module("torch.optim.optimizer")
        if self._defer_hook is None:
            self._defer_hook = optimizers.register_optimizer_step_pre_hook(_before_step)

    def _drop_deferred(self, indices: Iterable[Optional[int]]) -> None:
        for index in indices:
            self._deferred.pop(index, None)  # type: ignore[arg-type]

    def average_deferred(self, optimizer: Any) -> None:
        """Average the gradients of earlier backwards that the optimizer will use, unless the program discarded them."""
        mine = self._indices_of(optimizer) & self._deferred.keys()
        kept = {index for index in mine if self._is_kept(index, self._deferred.pop(index))}
        ddp = self._ddp()
        if kept and ddp is not None:
            self._synchronize(ddp, kept)
            self._every_rank = True

    def _is_kept(self, index: int, version: int) -> bool:
        """True unless ``zero_grad`` has removed the gradient or set it to zero."""
        parameter = self._parameters[index]()
        gradient = None if parameter is None else parameter.grad
        return gradient is not None and (gradient._version == version or bool(gradient.norm()))

    # ---------------------------------------------------------------- the collectives

    def _synchronize(self, ddp: Any, touched: set[int]) -> None:
        try:
            with self._waits(), self._torch.no_grad():
                agreed = self._agree(ddp.process_group, touched)
                if agreed is None:
                    return
                self._average(ddp.process_group, agreed)
                if self._shared:
                    self._take([index for index, kind in enumerate(agreed) if kind])
                if ddp.broadcast_buffers and ddp.modules_buffers and any(agreed):
                    self._broadcast_buffers(ddp, agreed)
        except RuntimeError as error:
            raise RuntimeError(
                f"[rank {notices.rank()}] averaging the gradients of {self._list(touched)} over all ranks failed. "
                f"{_EVERY_RANK}"
            ) from error

    def _agree(self, group: Any, touched: set[int]) -> Optional[list[int]]:
        """Return the kind of each parameter's gradient on all ranks; ``None`` if the ranks run different backwards.

        The kind is ``_NONE`` if any rank has no gradient. Runs one collective, or two if there is a problem to report.
        """
        torch = self._torch
        kinds = [_NONE] * len(self._parameters)
        device = None
        for index in touched:
            parameter = self._parameters[index]()
            gradient = None if parameter is None else parameter.grad
            if gradient is not None:
                kinds[index] = _DENSE if gradient.layout is torch.strided else _SPARSE
                device = device or gradient.device
        if device is None:
            first = next((p for p in (ref() for ref in self._parameters) if p is not None), None)
            device = None if first is None else first.device
        own = torch.tensor([_SIGNATURE, self._since_step % 256, *kinds], dtype=torch.uint8, device=device)
        both = torch.cat([own, 255 - own])  # MAX gives the largest and the smallest of each
        torch.distributed.all_reduce(both, torch.distributed.ReduceOp.MAX, group=group)
        numbers: list[int] = both.tolist()
        most, least = numbers[: len(own)], [255 - number for number in numbers[len(own) :]]
        if most[0] != _SIGNATURE or least[0] != _SIGNATURE:
            raise RuntimeError("Another rank ran another collective operation.")
        if most[1] != least[1]:
            self._report_other_backward(_of_each_rank(own, group))
            return None
        self._count_steps()
        agreed = [kind if lowest else _NONE for kind, lowest in zip(most[2:], least[2:])]
        uneven = {index for index, kind in enumerate(most[2:]) if kind != agreed[index]}
        if uneven - self._uneven:
            self._uneven |= uneven
            self._report_uneven(uneven, _of_each_rank(own, group))
        return agreed

    def _average(self, group: Any, agreed: list[int]) -> None:
        torch = self._torch
        world_size = torch.distributed.get_world_size(group)
        running = []
        for bucket in self._buckets(agreed):
            parts = [p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1).to(p.dtype) for p in bucket]
            # Divide before the sum, as DDP does, so that the result is bit-identical.
            flat = torch.cat(parts).mul_(1.0 / world_size)
            running.append((bucket, flat, torch.distributed.all_reduce(flat, group=group, async_op=True)))
        for bucket, flat, work in running:
            work.wait()
            for parameter, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                # .data keeps a graph that was created with create_graph=True valid.
                parameter.grad.data.copy_(part.view_as(parameter))
        for index, kind in enumerate(agreed):
            parameter = self._parameters[index]()
            if kind == _SPARSE and parameter is not None:
                parameter.grad = self._average_sparse(group, parameter, world_size)

    def _average_sparse(self, group: Any, parameter: Any, world_size: int) -> Any:
        gradient = parameter.grad  # NCCL has no reliable sparse collective
        dense = self._torch.zeros_like(parameter) if gradient is None else gradient.to_dense()
        self._torch.distributed.all_reduce(dense.div_(world_size), group=group)
        return dense.to_sparse(1)

    def _buckets(self, agreed: list[int]) -> Iterator[list[Any]]:
        """Yield buckets of parameters with dense gradients, by dtype and device. All ranks get the same buckets."""
        kinds: dict[Any, list[Any]] = {}
        for index, kind in enumerate(agreed):
            parameter = self._parameters[index]()
            if kind == _DENSE and parameter is not None:
                kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        for parameters in kinds.values():
            bucket: list[Any] = []
            size = 0
            for parameter in parameters:
                own = parameter.numel() * parameter.element_size()
                if bucket and size + own > BUCKET_BYTES:
                    yield bucket
                    bucket, size = [], 0
                bucket.append(parameter)
                size += own
            yield bucket

    def _broadcast_buffers(self, ddp: Any, agreed: list[int]) -> None:
        """Broadcast rank zero's buffers.

        Skips the buffers of a child that is not part of this backward: the graph of a forward whose backward comes
        later may need them.
        """
        reached = {self._names[index].partition(".")[0] for index, kind in enumerate(agreed) if kind}
        resting = self._children - reached
        buffers = []
        for name, buffer in ddp.module.named_buffers():
            if name in ddp.parameters_to_ignore or name.replace("_orig_mod.", "").partition(".")[0] in resting:
                continue
            # .data keeps graphs that use the buffer valid.
            buffers.append(buffer.data)
        if buffers:
            size = getattr(ddp, "broadcast_bucket_size", BUCKET_BYTES)
            self._torch.distributed._broadcast_coalesced(ddp.process_group, buffers, size, 0)

    # ---------------------------------------------------------------- warnings

    def _report_uneven(self, uneven: set[int], numbers: list[list[int]]) -> None:
        with_gradient = [rank for rank, of_rank in enumerate(numbers) if any(of_rank[2 + i] for i in uneven)]
        ranks = "; ".join(
            f"rank {rank} of {self._list({i for i in uneven if numbers[rank][2 + i]})}" for rank in with_gradient[:4]
        )
        notices.report_misuse(
            f"fabric-submodule-sync:uneven:{self._module_name}:{min(uneven)}",
            f"Only some ranks have gradients for parts that were called through Fabric's wrapper: {ranks}. They "
            "are not averaged, so the weights of the ranks diverge. If each rank trains different parts on purpose, "
            "call them through `.module`. Otherwise choose the part within the forward of a module, set that module "
            "up with `find_unused_parameters=True`, and call it as a whole.",
        )

    def _report_other_backward(self, numbers: list[list[int]]) -> None:
        self._remove_hooks()
        counts = ", ".join(f"{of_rank[1]} in rank {rank}" for rank, of_rank in enumerate(numbers[:8]))
        notices.report_misuse(
            f"fabric-submodule-sync:other-backward:{self._module_name}",
            f"The ranks have run different numbers of backwards through parts of {self._module_name} since the last "
            f"optimizer step: {counts}. From now on the gradients of its parts are not synchronized, as without the "
            f"patch fabric-submodule-sync, and those of one backward were averaged with others. {_EVERY_RANK}",
        )

    def _count_steps(self) -> None:
        """Count a backward. The count starts again when an optimizer with one of the parameters steps."""
        self._since_step += 1
        optimizers = importlib.import_module("torch.optim.optimizer")
        register = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if self._steps_hook is None and register is not None:
            me = weakref.ref(self)

            def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
                sync = me()
                if sync is None:
                    handle.remove()
                elif sync._since_step and sync._indices_of(optimizer):
                    sync._since_step = 0

            handle = self._steps_hook = register(after_step)

    # ---------------------------------------------------------------- missing ranks

    @contextlib.contextmanager
    def _waits(self) -> Iterator[None]:
        """Wrap a collective: a thread prints a warning if the wait for other ranks takes long."""
        if not self._watched:
            self._watched = True
            threading.Thread(target=_watch_waiting, args=(weakref.ref(self),), daemon=True).start()
        self._waiting = time.monotonic()
        try:
            yield
        finally:
            self._waiting = None

    def _warn_if_late(self) -> None:
        since = self._waiting
        if since is None or self._warned:
            return
        waited = time.monotonic() - since
        if waited > WARN_AFTER:
            self._warned = True
            notices.warn_once(
                f"fabric-submodule-sync:waiting:{self._module_name}",
                f"[rank {notices.rank()}] has waited {waited:.0f} seconds for other ranks, to average the gradients of "
                f"{self._list(self._reached)}. {_EVERY_RANK}",
                all_ranks=True,
            )

    def _remove_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        _live.discard(self)

    def _on_dropped(self) -> None:
        for hook in (self._steps_hook, self._defer_hook):
            if hook is not None:
                hook.remove()
        self._remove_hooks()

    def _has(self, parameter: Any) -> Optional[int]:
        index = self._index.get(id(parameter))
        return index if index is not None and self._parameters[index]() is parameter else None

    def _indices_of(self, optimizer: Any) -> set[int]:
        mine = (self._has(parameter) for group in optimizer.param_groups for parameter in group["params"])
        return {index for index in mine if index is not None}

    def _list(self, indices: set[int]) -> str:
        names = [self._names[index] for index in sorted(indices)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{more} of {self._module_name}"


_EVERY_RANK = (
    "If a rank accesses a part through the result of `fabric.setup`, even only to read its weights, all ranks must run "
    "the backward of that part. If only some ranks run it, access the part through `.module` only, put the backward "
    "under `fabric.no_backward_sync(module)`, or use `torch.autograd.grad`."
)


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    average_before(optimizer)


def _of_each_rank(own: Any, group: Any) -> list[list[int]]:
    import torch

    everyones = [torch.empty_like(own) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(everyones, own, group=group)
    return [numbers.tolist() for numbers in everyones]


def _watch_waiting(reference: weakref.ref[GradientSync]) -> None:
    while True:
        time.sleep(1)
        sync = reference()
        if sync is None:
            return
        with contextlib.suppress(Exception):  # the job ends, or its store is gone
            sync._warn_if_late()
        del sync


def _forgetter(sync: GradientSync) -> Callable[[Any], None]:
    me = weakref.ref(sync)

    def forget(_: Any) -> None:
        found = me()
        if found is not None:
            found._on_dropped()

    return forget


class _End:
    """A callback for the end of a backward. If the backward fails, the callback is freed without being called."""

    __slots__ = ("_sync", "_task")

    def __init__(self, sync: GradientSync, task: int) -> None:
        self._sync, self._task = sync, task

    def __call__(self) -> None:
        self._sync._on_end()

    def __del__(self) -> None:
        if self._sync._ddp_task == self._task + 1:
            self._sync._ddp_task = 0


def uncompiled(module: Any) -> Any:
    """Return the module inside a ``torch.compile`` wrapper, without ``getattr``, which a user's module may override."""
    return getattr(module, "_modules", {}).get("_orig_mod", module)


def _runs_reducer(ddp: Any) -> bool:
    """True unless this is the first iteration of a static graph and the backward has not reached DDP's output."""
    return not ddp.static_graph or getattr(ddp, "_static_graph_delay_allreduce_enqueued", True)


def _has_reduced(ddp: Any) -> bool:
    """True if DDP's reducer has finished."""
    check = getattr(ddp.reducer, "_check_reducer_finalized", None)
    try:
        if check is not None:
            check()
    except RuntimeError:
        return False
    return True
