"""Find out if there are other ranks, without calling the program's objects."""


def are_several() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)
