"""Loading an optimizer's state through Fabric also updates the wrapped optimizer."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_OWN = {"load_state_dict", "state_dict", "step", "zero_grad", "__del__", "_optimizer", "_strategy", "_callbacks"}
"""Attributes of the wrapper that are never copied from the optimizer, such as a replaced ``step``."""


def _load_state_dict(original: None, namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        # The wrapped optimizer makes the steps, and the wrapper has copies of its attributes. Loading creates new lists
        # and dicts, which both need.
        self.optimizer.load_state_dict(state_dict)
        vars(self).update({name: value for name, value in vars(self.optimizer).items() if name not in _OWN})

    return load_state_dict


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "resumed training continues with the optimizer's state"),
    affected=(">=1.9.0,<2.0.9",),
    targets=(Target("fabric.wrappers:_FabricOptimizer.load_state_dict", _load_state_dict, adds=True),),
    upstream=Upstream(
        pull_requests=(18488,),
        commit="cf437ed7c6",
        fixed_in="2.0.9",
        tests=("tests/tests_fabric/test_wrappers.py::test_fabric_optimizer_load_state_dict",),
    ),
    impact=Impact(
        "Training that is resumed with fabric.load() starts with a new optimizer: no momentum, and the "
        "learning rate of the script instead of the checkpoint's. There is no warning, and the wrapper shows "
        "the loaded state.",
        (
            "fabric.load does not restore the optimizer",
            "loss jumps after resuming with Fabric",
            "learning rate is reset after fabric.load",
        ),
    ),
)
