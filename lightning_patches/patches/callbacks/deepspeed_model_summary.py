"""fit with DeepSpeed stage 3 starts with a model summary."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _get_summary_data(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_summary_data(self: Any) -> Any:
        if hasattr(type(self), "flop_counts"):
            return original(self)  # the program has a workaround
        self.flop_counts = {}
        try:
            columns = original(self)
        finally:
            del self.flop_counts
        return [column for column in columns if column[0] != "FLOPs"]

    return _get_summary_data


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.5.4,<2.6.0",),
    targets=(
        Target(
            "pytorch.utilities.model_summary.model_summary_deepspeed:DeepSpeedSummary._get_summary_data",
            _get_summary_data,
        ),
    ),
    upstream=Upstream(issues=(21231,), pull_requests=(20868,), commit="6675932a60", fixed_in="2.6.0"),
    witnesses=("pytorch.utilities.model_summary.model_summary:ModelSummary.__init__",),
    impact=Impact(
        "With strategy='deepspeed_stage_3', fit fails before the first step, because the model summary reads FLOP "
        "counts that were added in 2.6.0.",
        ("'DeepSpeedSummary' object has no attribute 'flop_counts'", "deepspeed_stage_3 fails in the model summary"),
        error="AttributeError: 'DeepSpeedSummary' object has no attribute 'flop_counts'",
    ),
    note="The summary has no FLOPs column, as in 2.5.3; 2.6.0 adds one. Without the patch, set "
    "enable_model_summary=False. Tested without DeepSpeed, with parameters that have DeepSpeed's "
    "attributes.",
)
