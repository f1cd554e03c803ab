"""GradientSyncCheck with real ranks over gloo: it names differences, and is silent without any."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.ranks.gradient_sync_check import GradientSyncCheck
from tests.support import variants
from tests.support.run import execute
from tests.support.variants import Variant

PROGRAM = Path(__file__).parent / "programs" / "gradient_sync_check.py"
FABRIC = Variant("lightning", "2.6.6")
STUDENT = ["student.0.weight", "student.0.bias", "student.2.weight", "student.2.bias"]
APART = [[0], [1]]

pytestmark = pytest.mark.distributed


@cache
def observed(case: str, variant: Variant) -> list[dict[str, Any]]:
    """Return the observations of each rank."""
    with tempfile.TemporaryDirectory() as out:
        variables = variants.environment_of(variant)
        variables.pop("_LIGHTNING_PATCHES_IMPORT_ONLY", None)
        variables.update(SCENARIO_CASE=case, SCENARIO_OUT=out, SCENARIO_SHIM=str(int(variant.shim)))
        status, output = execute([sys.executable, str(PROGRAM)], variables, 300, cwd=out)
        ranks = [Path(out) / f"rank{rank}.json" for rank in range(2)]
        assert status == 0 and all(path.exists() for path in ranks), output[-5000:]
        return [json.loads(path.read_text()) for path in ranks]


@pytest.mark.parametrize("how", ["warn", "setup"])
def test_directly_called_submodule_is_named(how: str) -> None:
    """Issue 20293. Fabric passes the module to the callback in ``setup``, but not in ``setup_module``."""
    expected = {("gradient", name, 1, None) for name in STUDENT} | {("parameter", name, 1, None) for name in STUDENT}
    for rank, of_rank in enumerate(observed("fabric", FABRIC)):
        seen = of_rank["submodules"][how]
        assert {tuple(difference[:4]) for difference in seen["differences"]} == expected
        assert all(difference[4:] == [APART, []] for difference in seen["differences"])
        assert len(seen["warnings"]) == (rank == 0)
    (printed,) = observed("fabric", FABRIC)[0]["submodules"][how]["warnings"]
    gradients = f"gradients of {', '.join(STUDENT)} (ranks that agree: 0 | 1)"
    assert f"different models. At step 1 (the first check): {gradients}" in printed


def test_every_rank_raises_with_action_raise() -> None:
    for of_rank in observed("fabric", FABRIC):
        seen = of_rank["submodules"]["raise"]
        assert "Ranks train different models" in seen["error"] and "student.0.weight" in seen["error"]
        assert seen["warnings"] == []


def test_no_warning_if_the_patches_synchronize_the_ranks() -> None:
    assert observed("fabric", FABRIC)[0]["submodules"]["warn"]["differences"]
    for of_rank in observed("fabric", Variant("lightning", "2.6.6", shim=True)):
        for seen in of_rank["submodules"].values():
            assert seen == {"differences": [], "error": "", "warnings": []}


def test_equal_ranks_have_no_differences() -> None:
    assert [of_rank["legitimate"] for of_rank in observed("fabric", FABRIC)] == [[], []]


def test_differences_are_found() -> None:
    for of_rank in observed("fabric", FABRIC):
        found = of_rank["found"]
        assert found["moved"] == found["moved_sparse"] == [["gradient", "weight", 0, None, APART, []]]
        assert found["none"] == [["gradient", "0.bias", 0, None, APART, [1]]]
        assert found["frozen"] == [["parameter", "2.bias", 0, None, APART, []]]
        assert found["gradients_only"] == found["not_of_this_optimizer"] == []
        assert found["shapes"] == found["options"] == [["model", "", 0, None, APART, []]]
        assert "their parameters differ in number, name or shape" in found["shapes_raised"]
        assert found["nothing"] == found["parameters"] == []
        assert found["buffers"] == [["buffer", "running_mean", 0, None, APART, []]]
        assert found["optimizer_state"] == [["optimizer state", "exp_avg of weight", 0, None, APART, []]]
        assert found["in_step"] == 3
        assert of_rank["one_step"] == [["parameter", "weight", 0, None, APART, []]]


def test_ranks_compare_the_same_if_one_has_freed_a_module() -> None:
    assert [of_rank["dropped"] for of_rank in observed("fabric", FABRIC)] == [3, 3]


@pytest.mark.parametrize("how", ["setup", "setup_optimizers"])
def test_every_rank_of_fabric_raises_for_different_shapes(how: str) -> None:
    for of_rank in observed("fabric", FABRIC):
        message, differences = of_rank["shapes"][how]
        assert "their parameters differ in number, name or shape" in message
        assert differences == [["model", "", 1, None, APART, []]]


def test_check_returns_equal_different_or_not_comparable() -> None:
    for of_rank in observed("fabric", FABRIC):
        assert of_rank["outcomes"] == {
            "equal": "equal",
            "different": ["different", "different"],
            "new": [1, 0],
            "shapes": "different",
            "sharded": "not comparable",
        }


def test_check_is_a_callback_and_can_be_pickled() -> None:
    assert [of_rank["pickled"] for of_rank in observed("fabric", FABRIC)] == [[True, True, True]] * 2


def test_sharded_parameters_are_not_compared() -> None:
    first, second = observed("sharded", FABRIC)
    for of_rank in (first, second):
        assert of_rank["fsdp"] == of_rank["wholly"] == []
        assert of_rank["partly"] == [["parameter", "2.bias", 0, None, APART, []]]
    assert any("the module is sharded" in text for text in first["warnings"])
    assert any("no parameter is complete on every rank" in text for text in first["warnings"])


@pytest.mark.parametrize("variant", [Variant("pytorch-lightning", "2.0.9"), Variant("lightning", "2.6.6")], ids=str)
def test_ranks_of_a_trainer_that_differ_are_reported_with_the_step(variant: Variant) -> None:
    for rank, of_rank in enumerate(observed("trainer", variant)):
        assert of_rank["False"] == {"steps": 6, "differences": [], "warnings": []}
        diverged = of_rank["True"]
        assert diverged["steps"] == 6
        by_name = {(kind, name): rest for kind, name, *rest in diverged["differences"]}
        # Changed before step 4, found by the check before step 5. The gradients of DDP stay equal.
        assert by_name == {("parameter", "network.2.bias"): [4, 2, APART, []]}
        assert len(diverged["warnings"]) == (rank == 0)
        if rank == 0:
            assert (
                "different models. At step 4 (equal at step 2): parameters of network.2.bias" in diverged["warnings"][0]
            )


class TestArguments:
    @pytest.mark.parametrize(
        "options",
        [{"every_n_steps": 0}, {"every_n_steps": True}, {"action": "stop"}, {"gradients": False, "parameters": False}],
    )
    def test_invalid_arguments_are_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError):  # noqa: PT011
            GradientSyncCheck(**options)

    def test_check_does_nothing_without_lightning_or_ranks(self) -> None:
        class Optimizer:
            param_groups: list = []

        check = GradientSyncCheck(every_n_steps=1)
        check.on_after_optimizer_step(strategy=None, optimizer=Optimizer())
        assert check.differences == ()
