"""Verdicts as data, computed from the live objects each time, which can be written as JSON."""

from __future__ import annotations

import json

import pytest

from lightning_patches.engine import toggle
from lightning_patches.engine.patcher import Patcher
from lightning_patches.engine.verdicts import Entry, entries
from tests.unit.fakes import FIXED, FUNCTION, METHOD, World, toy


def verdicts(patcher: Patcher) -> dict[tuple[str, str], str]:
    return {(entry.patch, entry.namespace): entry.verdict for entry in entries(patcher)}


def test_entry_has_its_fields(world: World) -> None:
    world.install()
    (entry,) = entries(world.activate(toy()))
    assert entry == Entry(
        patch="toy",
        namespace="lightning",
        distribution="lightning",
        version="2.3.3",
        verdict="pending",
        reason="applies when pytorch.subject is imported",
        drop_at="2.4.0",
        modules=["pytorch.subject"],
    )


def test_entry_survives_json(world: World) -> None:
    world.install()
    world.install("2.4.0", "pytorch_lightning", source=FIXED)
    found = entries(world.activate(toy(), toy(METHOD, name="unfixed", fixed_in=None)))
    read = json.loads(json.dumps([entry.as_dict() for entry in found]))
    assert [Entry(**fields) for fields in read] == found
    assert [fields["drop_at"] for fields in read] == ["2.4.0", None] * 2


def test_verdict_follows_the_live_objects(world: World) -> None:
    world.install()
    patcher = world.activate(toy())
    key = "toy", "lightning"
    assert verdicts(patcher)[key] == "pending"
    module = world.load()
    assert verdicts(patcher)[key] == "applied"
    ours = module.compute
    module.compute = lambda *args: None
    assert verdicts(patcher)[key] == "failed"
    module.compute = ours
    assert verdicts(patcher)[key] == "applied"
    del module.compute
    assert verdicts(patcher)[key] == "failed"
    module.compute = ours
    assert patcher.deactivate() == []
    assert verdicts(patcher)[key] == "disabled"


def test_patch_is_pending_while_one_of_its_modules_is_not_imported(world: World) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, "fabric.subject:compute"))
    world.load()
    (entry,) = entries(patcher)
    assert entry.verdict == "pending"
    assert entry.reason == "applies when fabric.subject is imported; 1 of 2 targets are patched"


def test_fabric_alone_has_verdicts(world: World) -> None:
    world.install("2.3.3", "pytorch_lightning", parts=["fabric"])
    found = entries(world.activate(toy(), toy("fabric.subject:compute", name="for fabric")))
    assert [(e.distribution, e.verdict) for e in found] == [
        ("lightning-fabric", "not-affected"),
        ("lightning-fabric", "pending"),
    ]


@pytest.mark.parametrize("spec", ["off", "second"])
def test_unselected_patch_is_disabled(world: World, spec: str) -> None:
    world.install()
    patcher = world.activate(toy(), toy(METHOD, name="second"), spec=spec)
    assert entries(patcher)[0].verdict == "disabled"
    assert entries(patcher)[0].reason == f"not selected by {spec}"


def test_report_without_activation(world: World) -> None:
    world.install()
    patcher = world.patcher(toy(), toy(METHOD, name="second"))
    assert [e.verdict for e in entries(patcher)] == ["pending"] * 2  # like an activation
    outlook = toggle.parse("second", patcher.catalogue)
    assert [e.verdict for e in entries(patcher, outlook)] == ["disabled", "pending"]
    world.load()
    assert [e.reason for e in entries(patcher)] == ["not activated in this process"] * 2


def test_probe_is_called_for_an_applied_patch(world: World) -> None:
    world.install()
    asked, answers = [], [True, False]

    def probe() -> bool:
        asked.append(True)
        return answers[len(asked) - 1]

    patcher = world.activate(toy(probe=probe))
    assert entries(patcher)[0].reason.endswith("is imported; acts only if a probe finds the bug in torch")
    world.load()
    assert asked == [], "neither the plan nor the import asks"
    assert verdicts(patcher) == {("toy", "lightning"): "applied"}
    (entry,) = entries(patcher)
    assert entry.verdict == "not-affected"
    assert entry.reason.startswith("not needed: a probe finds")
