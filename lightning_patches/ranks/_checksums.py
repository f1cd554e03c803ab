"""Checksums of tensors. Equal values have equal checksums in every rank."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterable

UNCOMPARED: Any = object()
"""Placeholder for a tensor that is not compared."""
NONE_SUM = 1
"""Checksum of a gradient that is ``None``."""
_UNCOMPARED_SUM = 0
_COLUMNS = 4096
_MASK = (1 << 62) - 1


def checksum(tensor: Any, device: Any, exact: bool = True) -> Any:
    """Return a 64-bit checksum of a tensor's values and positions, as a tensor on ``device``.

    With ``exact=False`` all NaN are equal, and 0 equals -0.
    """
    import torch

    if tensor is UNCOMPARED or tensor is None or tensor.device.type == "meta":
        return torch.tensor(NONE_SUM if tensor is None else _UNCOMPARED_SUM, dtype=torch.int64, device=device)
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for piece in _pieces(tensor):
        if not exact and piece.is_floating_point() and piece.element_size() > 1:
            piece = torch.nan_to_num(piece, nan=0.12345, posinf=float("inf"), neginf=float("-inf")) + 0.0
        total = total * 1_000_003 + _hash(piece)
    return ((total & _MASK) % (_MASK - 1) + 2).to(device)


def _pieces(tensor: Any) -> Iterable[Any]:
    """Return the dense tensors that store a tensor's data."""
    import torch

    if tensor.is_sparse:
        tensor = tensor.coalesce()
        return tensor.indices(), tensor.values()
    if tensor.layout is not torch.strided:
        return (tensor.to_dense(),)
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor,)


def _hash(tensor: Any) -> Any:
    """Hash the bits of a dense tensor: sums over rows and columns with random weights.

    A plain sum would miss values that changed places, such as the rows of an embedding's gradient.
    """
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = tensor.contiguous().reshape(-1)
    bits = flat.view(kinds[flat.element_size()])
    whole = len(bits) // _COLUMNS * _COLUMNS
    tail = bits[whole:].to(torch.int64)
    total = (tail * _weights(_COLUMNS, bits.device)[: len(tail)]).sum() + len(bits)
    if whole:
        rows = bits[:whole].view(-1, _COLUMNS)
        for dimension in (0, 1):
            sums = rows.sum(dim=dimension, dtype=torch.int64)
            size = 1 << max(12, (len(sums) - 1).bit_length() + 1)
            total = total * 1_000_003 + (sums * _weights(size, bits.device)[: len(sums)]).sum()
    return total


@lru_cache(maxsize=None)
def _weights(size: int, device: Any) -> Any:
    """Return random weights that are the same in every rank."""
    import torch

    generator = torch.Generator().manual_seed(size)
    numbers = torch.randint(-(1 << 62), 1 << 62, (size,), generator=generator, device="cpu", dtype=torch.int64)
    return numbers.to(device)
