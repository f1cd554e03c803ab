"""Average gradients over ranks without DistributedDataParallel."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

BUCKET_BYTES = 25 * 1024 * 1024
"""Size of one collective in bytes, as in DDP."""


def average(parameters: Iterable[Any], group: Any) -> None:
    """Average the gradients of these parameters, which all ranks of the group must have in the same order."""
    import torch

    world_size = torch.distributed.get_world_size(group)
    dense: list[Any] = []
    sparse: list[Any] = []
    for parameter in parameters:
        (dense if parameter.grad.layout is torch.strided else sparse).append(parameter)
    running = []
    for bucket in _buckets(dense):
        # Divide before the sum, as DDP does, so that the result is bit-identical.
        flat = torch.cat([p.grad.reshape(-1).to(p.dtype) for p in bucket]).mul_(1.0 / world_size)
        running.append((bucket, flat, torch.distributed.all_reduce(flat, group=group, async_op=True)))
    for bucket, flat, work in running:
        work.wait()
        for parameter, part in zip(bucket, flat.split([p.numel() for p in bucket])):
            # .data keeps a graph that was created with create_graph=True valid.
            parameter.grad.data.copy_(part.view_as(parameter))
    for parameter in sparse:
        total = parameter.grad.to_dense().div_(world_size)  # NCCL has no reliable sparse collective
        torch.distributed.all_reduce(total, group=group)
        parameter.grad = total.to_sparse(1)


def _buckets(parameters: list[Any]) -> Iterator[list[Any]]:
    """Yield buckets of parameters, by dtype and device. All ranks get the same buckets."""
    buckets: dict[Any, list[Any]] = {}
    sizes: dict[Any, int] = {}
    for parameter in parameters:
        kind = (parameter.dtype, parameter.device)
        buckets.setdefault(kind, []).append(parameter)
        sizes[kind] = sizes.get(kind, 0) + parameter.numel() * parameter.element_size()
        if sizes[kind] >= BUCKET_BYTES:
            del sizes[kind]
            yield buckets.pop(kind)
    yield from buckets.values()
