"""PR 19470: ThroughputMonitor refuses the Trainer's own logging interval."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "throughput-monitor-logging-interval"


def test_accepted_interval_is_logged_as_on_stock():
    stock, shim = (
        run(
            "throughput_monitor_logging_interval",
            Variant("lightning", "2.2.0", shim),
            "taken",
            toggle=NAME if shim else None,
        )
        for shim in (False, True)
    )
    assert stock.ok, stock
    assert stock.observations == shim.observations
    assert stock.observations[0]["logged"]


REFUSED = ends_with("but these are not divisible and thus will not log anything.")
PROOFS = (
    Proof(NAME, REFUSED, case="default", since="2.2.0", right=sees(lambda seen: seen["steps"] == 128)),
    Proof(NAME, REFUSED, case="accumulated", since="2.2.0", right=sees(lambda seen: seen["steps"] == 64)),
)
