"""A custom batch sampler does not need a sampler attribute."""

from lightning_patches.patch import Impact, Patch, Upstream
from lightning_patches.patches.data._shuffling import TARGET

_ISSUE = 20326

PATCH = Patch(
    group="crash",
    affected=("==2.5.0",),
    targets=(TARGET,),
    upstream=Upstream(
        issues=(_ISSUE,),
        pull_requests=(20514,),
        commit="58a749a1dd",
        fixed_in="2.5.0.post0",
        tests=("tests/tests_pytorch/utilities/test_data.py::test_custom_batch_sampler_no_sampler",),
    ),
    impact=Impact(
        "Validation, test and prediction with a custom batch sampler fail before the first batch.",
        ("object has no attribute 'sampler'",),
        error="AttributeError: '...' object has no attribute 'sampler'",
    ),
)
