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
