"""PR 21395: AdvancedProfiler(dump_stats=True) ends in an error if a callback monitors a metric with a slash."""

import pytest

from tests.equivalence.proof import Proof, ends_with, only
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["plain", "nowhere"])
def test_other_names_and_errors_are_unchanged(case):
    stock, shim = (run("profiler_file_names", Variant("lightning", "2.6.0", shim), case) for shim in (False, True))
    assert stock.ok is shim.ok is (case == "plain")
    assert stock.observations[0].keys() == shim.observations[0].keys()
    assert stock.observations[0].get("files") == shim.observations[0].get("files")


PROOFS = (
    Proof(
        "profiler-file-names",
        ends_with("[Callback]EarlyStopping{'monitor': 'val/loss'"),
        observed=only("words"),
        since="2.4.0",
        note="The files' names without what is no letter and no digit: the official fix renames all files.",
    ),
)
