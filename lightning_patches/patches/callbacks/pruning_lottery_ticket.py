"""ModelPruning with the lottery ticket hypothesis restores the initial weights."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _copy_param(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _copy_param(new: Any, old: Any, name: str) -> None:
        pruned = getattr(new, f"{name}_orig", None)
        first = getattr(old, name)
        if pruned is None or first is None:
            original(new, old, name)
        else:  # for a pruned parameter, `name` is the masked tensor, which each forward computes again
            pruned.data = first.data.to(pruned.device)

    return _copy_param


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "the remaining weights are reset"),
    affected=(">=1.8.0,<2.6.0",),
    targets=(Target("pytorch.callbacks.pruning:ModelPruning._copy_param", _copy_param),),
    upstream=Upstream(
        pull_requests=(21191,),
        commit="d73c50d264",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/callbacks/test_pruning.py::test_lottery_ticket_hypothesis_correctly_reset",),
    ),
    impact=Impact(
        "ModelPruning(use_lottery_ticket_hypothesis=True) prunes, but training continues with the trained "
        "weights: nothing is reset, without a warning.",
        ("lottery ticket hypothesis does not reset the weights",),
    ),
    opt_in="users who prune with use_lottery_ticket_hypothesis=True",
    signs=("use_lottery_ticket_hypothesis",),
    note="Opt-in because runs end with other weights.",
)
