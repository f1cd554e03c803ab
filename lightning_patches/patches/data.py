"""``pytorch/utilities/data.py``: what Lightning knows about a DataLoader."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _is_shuffled(original: Callable[[Any], bool], namespace: str) -> Callable[[Any], bool]:
    def _is_dataloader_shuffled(dataloader: Any) -> bool:
        batch_sampler = getattr(dataloader, "batch_sampler", None)
        if batch_sampler is None or not hasattr(dataloader, "sampler"):
            return original(dataloader)
        # A loader that was made with a batch sampler has a sampler that torch puts there and that nothing uses. The
        # one to ask is that of the batch sampler, which need not have one.
        sampler = getattr(batch_sampler, "sampler", batch_sampler)
        return original(_View(dataloader, batch_sampler=None, sampler=sampler))

    return _is_dataloader_shuffled


class _View:
    """An object's attributes, some of them replaced."""

    def __init__(self, viewed: Any, **others: Any) -> None:
        self.__dict__.update(others)
        self.__dict__["_viewed"] = viewed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._viewed, name)


_TARGET = Target("pytorch.utilities.data:_is_dataloader_shuffled", _is_shuffled)
_ISSUE = 20326
_TESTS = "tests/tests_pytorch/utilities/test_data.py"

PATCHES = (
    Patch(
        name="batch-sampler-shuffled",
        title="A batch sampler that shuffles is recognized in validation and test",
        group="correctness",
        affected=(">=2.0.0,<2.5.0",),
        targets=(_TARGET,),
        upstream=Upstream(
            issues=(_ISSUE,),
            pull_requests=(20327,),
            commit="bd5866b295",
            fixed_in="2.5.0",
            tests=(f"{_TESTS}::test_batch_sampler_shuffle_setting",),
        ),
        impact=Impact(
            "Under DDP a DataLoader whose batch sampler draws from a RandomSampler gives its items in order in "
            "validation and test: with limit_val_batches always the first ones.",
            ("random batch sampler is not shuffled in validation under DDP",),
        ),
        note="With it, and as in the later releases, Lightning warns that a validation loader shuffles, and which "
        "items a limited validation sees under DDP is random, as the loader asks and as it is on one device.",
    ),
    Patch(
        name="batch-sampler-without-sampler",
        title="A custom batch sampler need not have a sampler attribute",
        group="crash",
        affected=("==2.5.0",),
        targets=(_TARGET,),
        upstream=Upstream(
            issues=(_ISSUE,),
            pull_requests=(20514,),
            commit="58a749a1dd",
            fixed_in="2.5.0.post0",
            tests=(f"{_TESTS}::test_custom_batch_sampler_no_sampler",),
        ),
        impact=Impact(
            "Validation, test and prediction with a custom batch sampler fail before the first batch.",
            ("object has no attribute 'sampler'",),
        ),
    ),
)
