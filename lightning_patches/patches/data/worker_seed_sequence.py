"""Seeded DataLoader workers draw new random numbers in each epoch."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_BITS_64 = (1 << 64) - 1


_announced = False


def _generate_seed_sequence(original: Callable[..., list[int]], namespace: str) -> Callable[..., list[int]]:
    def generate_seed_sequence(base_seed: int, worker_id: int, global_rank: int, count: int) -> list[int]:
        # The original uses a linear congruential generator. The low bits of its output depend only on the low bits of
        # its start value, which contain the worker and the rank but not the seed, and torch's seed is made of these
        # bits. So the start value is scrambled first, and then passed as the three parts that the original combines.
        start = _mix((base_seed << 32) | (worker_id << 16) | global_rank)
        return original(start >> 32, (start >> 16) & 0xFFFF, start & 0xFFFF, count)

    return generate_seed_sequence


def _mix(number: int) -> int:
    """Apply MurmurHash3's 64-bit finalizer: each bit of the result depends on every bit of the number."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        number = ((number ^ (number >> 33)) * factor) & _BITS_64
    return number ^ (number >> 33)


def _auto_add_worker_init_fn(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def auto_add_worker_init_fn(dataloader: Any, rank: int) -> None:
        had_none = getattr(dataloader, "worker_init_fn", original) is None
        original(dataloader, rank)
        if had_none and dataloader.worker_init_fn is not None and getattr(dataloader, "num_workers", 0) > 0:
            _announce()

    return auto_add_worker_init_fn


def _announce() -> None:
    global _announced
    if not _announced:
        _announced = True
        notices.notice(
            "seed_everything(workers=True): DataLoader workers draw new random numbers in each epoch and for each"
            " seed, as from 2.6.1 on; random augmentation differs from earlier runs (worker-seed-sequence)"
        )


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "random values in the workers of a DataLoader"),
    affected=(">=2.4.0,<2.6.1",),
    targets=(
        Target("fabric.utilities.seed:_generate_seed_sequence", _generate_seed_sequence),
        Target("fabric.utilities.data:_auto_add_worker_init_fn", _auto_add_worker_init_fn),
    ),
    upstream=Upstream(
        issues=(20412,),
        pull_requests=(21399, 20369),
        commit="49772c3d80",
        fixed_in="2.6.1",
        tests=("tests/tests_fabric/utilities/test_seed.py::test_generate_seed_sequence_no_collision",),
        others=((20369, "2.5.0"),),
    ),
    impact=Impact(
        "After seed_everything(seed, workers=True), random augmentation in DataLoader workers that uses torch "
        "is the same in every epoch and for every seed. In 2.4.0 this also holds for augmentation that uses "
        "NumPy.",
        ("same random augmentations in every epoch", "torch.rand in a worker does not depend on the seed"),
    ),
    note="Random numbers in the workers differ from earlier runs of the same release: those of torch and "
    "Python become the same as in 2.6.1. Those of NumPy change only in 2.4.0: they vary as they should, "
    "but differ from 2.6.1.",
)
