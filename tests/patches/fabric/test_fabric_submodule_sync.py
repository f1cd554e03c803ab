from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lightning_patches.patches.fabric import fabric_submodule_sync
from tests.support.variants import Result, Variant, run

pytestmark = pytest.mark.distributed

RELEASES = [("pytorch-lightning", "2.0.9"), ("lightning", "2.6.6")]

NEWEST = RELEASES[-1]

ALL_CASES = "access,training,options,gan,user_model,silence,misuse,healthy,some_ranks,alone"

ACCESS = ("attribute", "item", "nested_path", "method_of_child", "method_of_root", "with_optimizer")

REFUSED = {"item": "'_FabricModule' object is not subscriptable", "method_of_root": "from outside the model"}


@cache
def variant(release: tuple[str, str], shim: bool, cases: str = "", toggle: str | None = None) -> Result:
    cases = cases or (ALL_CASES if release == NEWEST else "access")
    result = run(
        "fabric_submodule_sync",
        Variant(*release, shim=shim),
        cases,
        simulated_cuda=cases == "cuda",
        toggle=toggle,
        timeout=540,
    )
    assert result.ok, result
    return result


def seen(result: Result, part: str, what: str = "container") -> list[Any]:
    """Return the observations of each rank for one part of the scenario."""
    return [rank[part][what] for rank in result.observations]


def warnings_of(result: Result, part: str, usage: str = "container") -> list[list[str]]:
    """Return each rank's warnings, without Lightning's hint about SLURM."""
    return [[said for said in rank if "`srun`" not in said] for rank in seen(result, part, f"{usage} warnings")]


def assert_fixed(part: str, stock: Result, shim: Result) -> None:
    """Check that stock differs, and that the shim is bit-identical to the recommended usage on stock."""
    reference = seen(stock, part, "recommended")
    assert not any("error" in rank for rank in reference), reference
    assert seen(stock, part) != reference
    assert seen(shim, part) == reference
    assert seen(shim, part, "recommended") == reference
    for usage in ("container", "recommended"):
        assert warnings_of(shim, part, usage) == [[], []]


@pytest.mark.parametrize("part", ACCESS)
@pytest.mark.parametrize("release", RELEASES, ids="-".join)
def test_gradients_are_averaged_for_every_way_to_reach_a_submodule(release: tuple[str, str], part: str) -> None:
    stock = variant(release, shim=False)
    first, second = seen(stock, part)
    if part == "item" or (part == "method_of_root" and release[1] != "2.0.9"):
        assert REFUSED[part] in first["error"] and REFUSED[part] in second["error"]
    else:
        assert first != second, "gradients are synchronized in stock"
        warned = part == "method_of_root"  # 2.0.9 only warns on rank zero
        assert [len(said) for said in warnings_of(stock, part)] == [int(warned), 0]
    assert_fixed(part, stock, variant(release, shim=True))
    assert len({str(rank) for rank in seen(variant(release, shim=True), part)}) == 1


@pytest.mark.parametrize(
    "part",
    [
        "accumulation",
        "accumulation_with_sync",
        "two_forwards",
        "batch_norm",
        "root_and_child_by_turns",
        "set_up_twice",
        "sparse_embedding",
        "several_buckets",
        "channels_last_and_double",
        "reentrant_checkpoint",
        "after_a_failed_backward",
        "find_unused_parameters",
        "static_graph",
        "static_graph_after_an_unused_forward",
        "gradient_as_bucket_view",
        "no_buffer_broadcast",
        "gan",
        "compiled",
        "compiled_child",
        "root_then_child",
    ],
)
def test_gradients_are_averaged_for_every_way_to_train(part: str) -> None:
    stock = variant(NEWEST, shim=False)
    assert not any("error" in rank for rank in seen(stock, part))
    assert_fixed(part, stock, variant(NEWEST, shim=True))


def test_gradients_on_a_gpu_are_averaged() -> None:
    stock, shim = variant(NEWEST, shim=False, cases="cuda"), variant(NEWEST, shim=True, cases="cuda")
    assert_fixed("on_cuda", stock, shim)
    assert seen(shim, "fsdp") == seen(stock, "fsdp")  # left alone
    assert not any("error" in rank for rank in seen(stock, "fsdp"))


def test_torch_without_accumulation_hooks_is_unchanged() -> None:
    stock, shim = (variant(NEWEST, shim=shim, cases="older_torch") for shim in (False, True))
    assert seen(shim, "hooks_on_accumulators") == seen(stock, "hooks_on_accumulators")
    assert seen(shim, "item") == seen(stock, "item")
    assert all(REFUSED["item"] in rank["error"] for rank in seen(shim, "item"))


def test_method_works_on_one_device_as_on_two() -> None:
    """Calls that work on two devices also work on one, where users try their scripts first."""
    stock, shim = variant(NEWEST, shim=False, cases="single"), variant(NEWEST, shim=True, cases="single")
    assert REFUSED["method_of_root"] in seen(stock, "on_one_device")[0]["error"]
    assert seen(shim, "on_one_device") == seen(stock, "on_one_device", "recommended")


def test_copied_saved_and_compiled_models_are_unchanged() -> None:
    stock, shim = variant(NEWEST, shim=False), variant(NEWEST, shim=True)
    for part in ("copies_and_files", "freed", "compiled_wrapper"):
        assert seen(shim, part) == seen(stock, part)
        assert not any("error" in rank for rank in seen(shim, part))
    for rank in seen(shim, "copies_and_files"):
        assert rank["unchanged"] and rank["wrapper"] and rank["hooks"] == 0
    assert seen(shim, "freed") == [{"wrapper": True, "parameters": True}] * 2


def test_legitimate_uses_are_unchanged_without_a_warning() -> None:
    stock, shim = variant(NEWEST, shim=False), variant(NEWEST, shim=True)
    assert not any("error" in rank for rank in seen(stock, "legitimate"))
    assert seen(shim, "legitimate") == seen(stock, "legitimate")
    assert warnings_of(shim, "legitimate") == [[], []]


HEALTHY = (
    "kept_reference",
    "kept_root",
    "diagnostics_on_rank_zero",
    "two_backwards_of_one_forward",
    "uneven_local_sgd",
    "a_head_for_each_rank",
    "what_the_wrapper_can",
    "part_that_is_only_looked_at",
    "wrapper_is_copied",
)


@pytest.mark.parametrize("part", HEALTHY)
def test_calls_that_bypass_ddp_on_purpose_are_unchanged(part: str) -> None:
    stock, shim = variant(NEWEST, shim=False), variant(NEWEST, shim=True)
    assert not any("error" in rank for rank in seen(stock, part))
    assert seen(shim, part) == seen(stock, part)
    assert warnings_of(shim, part) == warnings_of(stock, part)


def test_gradients_that_only_some_ranks_have_are_not_divided() -> None:
    part = "own_part_for_each_rank"
    stock, shim = variant(NEWEST, shim=False), variant(NEWEST, shim=True)
    assert seen(shim, part) == seen(stock, part)
    for rank, said in enumerate(warnings_of(shim, part)):
        assert len(said) == 1 and said[0].startswith(f"[rank {rank}] Only some ranks have gradients for parts")
        assert "rank 0 of a.weight, a.bias of ModuleDict; rank 1 of b.weight, b.bias" in said[0]


def test_backward_on_only_one_rank_is_detected_at_the_next_backward() -> None:
    part = "one_more_backward_in_rank_zero"
    for rank, said in enumerate(warnings_of(variant(NEWEST, shim=True), part)):
        assert len(said) == 1 and said[0].startswith(f"[rank {rank}] The ranks have run different numbers of backwards")
        assert "1 in rank 0, 0 in rank 1" in said[0] and "`.module`" in said[0]


def test_rank_that_waits_for_another_warns() -> None:
    shim = variant(NEWEST, shim=True, cases="late")
    first, second = warnings_of(shim, "one_rank_comes_late")
    assert len(first) == 1 and first[0].startswith("[rank 0] has waited 1")
    assert not second
    assert len({str(rank) for rank in seen(shim, "one_rank_comes_late")}) == 1, "and then they are averaged"


@pytest.mark.parametrize(
    ("part", "cases"), [("saliency_in_rank_zero", ""), ("saliency_in_rank_zero_before_training", "late")]
)
def test_backward_of_one_rank_changes_nothing_when_its_gradients_are_discarded(part: str, cases: str) -> None:
    stock, shim = (variant(NEWEST, shim=shim, cases=cases) for shim in (False, True))
    reference = seen(stock, part, "recommended")
    assert seen(stock, part) == seen(shim, part) == seen(shim, part, "recommended") == reference
    assert warnings_of(shim, part) == [[], []]


def test_first_gradients_are_averaged_before_the_step_when_a_rank_is_late() -> None:
    stock, shim = (variant(NEWEST, shim=shim, cases="late") for shim in (False, True))
    assert_fixed("one_rank_comes_late_to_the_first_backward", stock, shim)


def test_method_under_autocast_is_refused_as_on_stock() -> None:
    for shim in (False, True):
        for rank in seen(variant(NEWEST, shim=shim), "methods_under_autocast"):
            assert REFUSED["method_of_root"] in rank["error"]


def test_strategy_result_that_is_not_a_module_is_unchanged() -> None:
    class Original(torch.nn.Module):
        def __init__(self, forward_module: Any) -> None:
            super().__init__()
            self._forward_module = self._original_module = forward_module

    made = SimpleNamespace()
    fabric_module = Original.__new__(Original)
    fabric_submodule_sync._init(Original.__init__, "lightning")(fabric_module, made)
    assert fabric_module._forward_module is made
