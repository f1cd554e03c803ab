"""Issue 20692: the step that was logged as "step" comes to the loggers as a float."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run


def of(kind):
    return observes({"seen": [[["index"], 5, kind], [["index"], 6, kind]], "logged": ["index", "step"]})


def test_metrics_without_a_step_are_unchanged():
    stock, shim = (
        run("logged_step_whole", Variant("pytorch-lightning", "2.5.1", s), "without", toggle="all" if s else None)
        for s in (False, True)
    )
    assert stock.ok, stock
    assert stock.observations == shim.observations


PROOFS = (Proof("logged-step-whole", of("float"), right=of("int")),)
