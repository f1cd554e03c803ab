"""PR 17914: FSDP looks at the first parameter group only."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

NAME = "fsdp-parameter-groups"
MESSAGE = "The optimizer does not seem to reference any FSDP parameters"


def test_optimizer_without_parameters_is_refused_as_on_stock():
    result = run("fsdp_parameter_groups", Variant("pytorch-lightning", "2.0.4", shim=True), "none", simulated_cuda=True)
    assert MESSAGE in result.observations[0]["error"]


PROOFS = (Proof(NAME, ends_with(MESSAGE), simulated_cuda=True, one_card=True, right=observes({"steps": 2})),)
