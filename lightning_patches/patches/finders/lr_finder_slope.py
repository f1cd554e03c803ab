"""The learning rate finder uses the steepest slope per learning rate, not per step."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_TESTS = "tests/tests_pytorch/tuner/test_lr_finder.py"


def _suggestion(original: Callable[..., Optional[float]], namespace: str) -> Callable[..., Optional[float]]:
    def suggestion(self: Any, skip_begin: int = 10, skip_end: int = 1) -> Optional[float]:
        import torch

        losses = torch.tensor(self.results["loss"][skip_begin:-skip_end])
        usable = torch.isfinite(losses).nonzero().flatten()
        if len(usable) < 2:
            return original(self, skip_begin, skip_end)  # the original warns that there are too few points
        rates = torch.tensor(self.results["lr"][skip_begin:-skip_end])
        (slopes,) = torch.gradient(losses[usable], spacing=[rates[usable]])
        self._optimal_idx = skip_begin + int(usable[slopes.argmin()])
        best: float = self.results["lr"][self._optimal_idx]
        return best

    return suggestion


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the learning rate that is suggested"),
    affected=(">=1.8.0,<2.5.3",),
    targets=(Target("pytorch.tuner.lr_finder:_LRFinder.suggestion", _suggestion),),
    upstream=Upstream(
        pull_requests=(21055,),
        commit="105bb20e48",
        fixed_in="2.5.3",
        tests=(
            f"{_TESTS}::test_gradient_correctness",
            f"{_TESTS}::test_exponential_vs_linear_mode_gradient_difference",
        ),
    ),
    impact=Impact(
        "In its default exponential mode, the learning rate finder suggests the learning rate where the loss "
        "falls most between two trials, instead of the one where it falls most per change of the learning rate.",
        ("lr_find suggests a learning rate that is too large",),
    ),
    opt_in="users who train with the suggested learning rate and find it too high",
    signs=("lr_find", "LearningRateFinder"),
    note="Opt-in because the suggested learning rates change: in exponential mode they are usually much smaller.",
)
