"""Whether there are other ranks, without a question to objects of the program's."""

from __future__ import annotations


def are_several() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)
