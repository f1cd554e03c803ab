"""Programs that differ only in what should not matter train alike, on stock and with the patches."""

from __future__ import annotations

import pytest

from tests.support.variants import Variant, distribution_of, run

LAWS = (
    ("accumulated", "large"),
    ("ranks", "whole"),
    ("tested", "tested-anew"),
    ("validated", "bare"),
    ("reused", "new"),
)


@pytest.mark.parametrize("shim", [False, True], ids=["stock", "patched"])
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
@pytest.mark.parametrize(("one", "other"), LAWS, ids=[one for one, _ in LAWS])
def test_programs_train_alike(one: str, other: str, version: str, shim: bool) -> None:
    variant = Variant(distribution_of(version), version, shim)
    first, second = (run("laws", variant, case) for case in (one, other))
    assert first.ok and second.ok, (first, second)
    assert first.observations[0] == second.observations[0]


UNUSED = {
    "Trainer": {"model_registry": "needs the package litmodels, and a tip of Lightning names it"},
    "EarlyStopping": {"log_rank_zero_only": "changes the messages of other ranks than zero"},
    "CSVLogger": {"flush_logs_every_n_steps": "the Trainer also saves after each row; a row written late can be lost"},
}
"""Arguments that make no difference, by owner, with the reason."""


@pytest.mark.parametrize("shim", [False, True], ids=["stock", "patched"])
@pytest.mark.parametrize(
    "owner", ["Trainer", "Fabric", "ModelCheckpoint", "EarlyStopping", "CSVLogger", "lr_find", "scale_batch_size"]
)
def test_each_argument_is_used_or_refused(owner: str, shim: bool) -> None:
    result = run("arguments", Variant("lightning", "2.6.6", shim), owner, timeout=600)
    assert result.ok, result
    assert result.observations == [{"unused": sorted(UNUSED.get(owner, {})), "untested": [], "is_steady": True}]
