"""Ray Train with Lightning: two Ray workers on this machine."""

from __future__ import annotations

import importlib.util

import pytest

from tests.activation.conftest import PROGRAMS, World, check

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="needs ray[train], which the tests do not bring"
    ),
]


def test_workers_of_ray_train_are_patched(world: World) -> None:
    reports = world.launch(str(PROGRAMS / "ray_train.py"), timeout=500, RAY_USAGE_STATS_ENABLED="0")
    reports = {name: seen for name, seen in reports.items() if name.startswith("ray-")}
    check(reports, {"ray-0", "ray-1"})
