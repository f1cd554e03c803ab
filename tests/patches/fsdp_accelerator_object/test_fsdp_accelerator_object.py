"""PR 20964: FSDP refuses a CUDAAccelerator object."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

NAME = "fsdp-accelerator-object"
MESSAGES = ("`fsdp` requires a GPU accelerator, but got: <", "to be `fsdp`, but GPU accelerator is not used.")
"""From 2.3.0 on, and below."""


def test_cpu_accelerator_is_refused_as_on_stock():
    result = run("fsdp_accelerator_object", Variant("lightning", "2.5.2", shim=True), "cpu", simulated_cuda=True)
    assert MESSAGES[0] in result.observations[0]["error"]


PROOFS = (
    Proof(
        NAME,
        lambda result: any(message in result.output for message in MESSAGES),
        simulated_cuda=True,
        one_card=True,
        right=sees(lambda seen: seen == {"device": "cuda:0", "same": True}),
    ),
)
