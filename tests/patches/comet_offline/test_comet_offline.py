"""Issue 21617: CometLogger(online=False) records nothing."""

import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["online", "disabled"])
def test_other_experiments_are_unchanged(case):
    stock, shim = (run("comet_offline", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "comet-offline",
    sees(lambda seen: seen["disabled"] is True and not seen["recorded"]),
    "offline",
    recommended="started",
    since="2.5.1",
    right=sees(lambda seen: seen["recorded"] and seen["online"] is False),
)
