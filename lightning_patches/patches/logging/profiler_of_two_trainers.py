"""One AdvancedProfiler can be used by a Trainer that runs within another one's run."""

from __future__ import annotations

from typing import Any, Callable
from weakref import WeakKeyDictionary

from lightning_patches.patch import Impact, Patch, Target, Upstream

_cleared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""Actions that the teardown of another Trainer's run has removed from a profiler."""


def _stop(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def stop(self: Any, action_name: str) -> None:
        if action_name in self.profiled_actions or action_name not in _cleared.get(self, ()):
            original(self, action_name)

    return stop


def _teardown(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def teardown(self: Any, stage: Any) -> None:
        _cleared.setdefault(self, set()).update(self.profiled_actions)
        original(self, stage)

    return teardown


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.profilers.advanced:AdvancedProfiler.stop", _stop),
        Target("pytorch.profilers.advanced:AdvancedProfiler.teardown", _teardown),
    ),
    upstream=Upstream(issues=(9136,)),
    impact=Impact(
        "A Trainer with an AdvancedProfiler ends in a ValueError if another Trainer with the same profiler ran within "
        "its run, for example a search in a hook.",
        (
            "Attempting to stop recording an action (...) which was never started",
            "one AdvancedProfiler in two Trainers",
        ),
        error="ValueError: Attempting to stop recording an action (...) which was never started.",
        would_tell="that a Trainer with the same profiler ran in a hook",
    ),
    note="The outer run's report has only the actions after the inner run, as with SimpleProfiler.",
)
