"""Data loaders are reloaded in each epoch."""

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NAME = "reload-starts-once"


def test_run_without_reloaded_loaders_is_unchanged():
    stock, shim = (
        run("reload_starts_once", Variant("lightning", "2.6.6", shim), "kept", toggle=f"default,{NAME}")
        for shim in (False, True)
    )
    assert stock.ok and stock.observations == shim.observations


def starts(number):
    return sees(lambda seen: seen["starts"] == number)


PROOFS = proofs(NAME, starts(5), recommended="kept", right=starts(3))
