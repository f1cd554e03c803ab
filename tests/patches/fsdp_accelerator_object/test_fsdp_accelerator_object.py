from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

NAME = "fsdp-accelerator-object"
PROGRAM = Program(NAME, "2.5.2", options={"simulated_cuda": True})
MESSAGES = ("`fsdp` requires a GPU accelerator, but got: <", "to be `fsdp`, but GPU accelerator is not used.")
"""From 2.3.0 on, and below."""


def test_cpu_accelerator_is_refused_as_on_stock():
    assert all(MESSAGES[0] in result.observations[0]["error"] for result in PROGRAM.both("cpu"))


PROOFS = proofs(
    NAME,
    lambda result: any(message in result.output for message in MESSAGES),
    simulated_cuda=True,
    one_card=True,
    right=sees(lambda seen: seen == {"device": "cuda:0", "same": True}),
)
