"""AdvancedProfiler works with nested actions on Python 3.12 and later."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def start(self: Any, action_name: str) -> None:
        try:
            original(self, action_name)
        except ValueError:  # Python 3.12 and later allows one profiler at a time
            for profile in self.profiled_actions.values():
                profile.disable()
            self.profiled_actions[action_name].enable()

    return start


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.5.3",),
    only_with=("python>=3.12",),
    targets=(Target("pytorch.profilers.advanced:AdvancedProfiler.start", _start),),
    upstream=Upstream(
        issues=(19983,),
        pull_requests=(20809,),
        commit="11968ba4d3",
        fixed_in="2.5.3",
        tests=("tests/tests_pytorch/profilers/test_profiler.py::test_advanced_profiler_nested",),
    ),
    impact=Impact(
        "On Python 3.12 and later, fit with profiler='advanced' fails as soon as an action starts within another one.",
        ("Another profiling tool is already active", "profiler='advanced' does not work on Python 3.12"),
        error="ValueError: Another profiling tool is already active",
        frames=("/profilers/advanced.py",),
    ),
    note="As in the official fix, an action is not measured while a nested action runs, nor afterwards. "
    "Another profiler around the training, such as python -m cProfile, still causes the error.",
)
