"""AdvancedProfiler can save actions whose names are not valid file names."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_TAKEN = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))


def _dump_stats(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _dump_stats(self: Any, action_name: str, profile: Any) -> None:
        try:
            original(self, action_name, profile)
        except OSError:
            taken = action_name.translate(_TAKEN)
            if taken == action_name:
                raise
            original(self, taken, profile)

    return _dump_stats


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.4.0,<2.6.1",),
    targets=(Target("pytorch.profilers.advanced:AdvancedProfiler._dump_stats", _dump_stats),),
    witnesses=("pytorch.profilers.profiler:Profiler._prepare_filename",),
    upstream=Upstream(pull_requests=(21395,), commit="04baf7ff27", fixed_in="2.6.1"),
    impact=Impact(
        "With AdvancedProfiler(dump_stats=True), fit fails without the profiler's report if a callback such as "
        "ModelCheckpoint or EarlyStopping monitors a metric with a slash in its name, such as val/loss.",
        ("[Callback]ModelCheckpoint{'monitor':", "[Callback]EarlyStopping{'monitor':"),
        error="FileNotFoundError: [Errno 2] No such file or directory: ...[Callback]ModelCheckpoint{'monitor': ...",
    ),
    note="A file name differs from the action's name only if saving under that name fails. The official fix "
    "changes the names of all files.",
)
