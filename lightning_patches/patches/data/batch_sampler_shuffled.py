"""A batch sampler that shuffles is recognized in validation and test."""

from lightning_patches.patch import Effect, Impact, Patch, Upstream
from lightning_patches.patches.data._shuffling import TARGET

_ISSUE = 20326

PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "in validation and test under DDP"),
    affected=(">=1.8.0,<2.5.0",),
    targets=(TARGET,),
    upstream=Upstream(
        issues=(_ISSUE,),
        pull_requests=(20327,),
        commit="bd5866b295",
        fixed_in="2.5.0",
        tests=("tests/tests_pytorch/utilities/test_data.py::test_batch_sampler_shuffle_setting",),
    ),
    impact=Impact(
        "Under DDP, a DataLoader whose batch sampler uses a RandomSampler yields its items in order in validation and "
        "test. With limit_val_batches, these are always the first items.",
        ("random batch sampler is not shuffled in validation under DDP",),
    ),
    note="As in later releases, Lightning then warns that a validation loader shuffles, and a limited "
    "validation under DDP uses random items, as on one device.",
)
