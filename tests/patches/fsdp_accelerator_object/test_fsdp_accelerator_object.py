from tests.support.programs import Program, sees

PROGRAM = Program("fsdp-accelerator-object", "2.5.2", options={"simulated_cuda": True})
MESSAGES = ("`fsdp` requires a GPU accelerator, but got: <", "to be `fsdp`, but GPU accelerator is not used.")
"""From 2.3.0 on, and below."""


def test_cpu_accelerator_is_refused_as_on_stock():
    assert all(MESSAGES[0] in result.observations[0]["error"] for result in PROGRAM.both("cpu"))


PROOFS = PROGRAM.proofs(
    lambda result: any(message in result.output for message in MESSAGES),
    simulated_cuda=True,
    one_card=True,
    right=sees(lambda seen: seen == {"device": "cuda:0", "same": True}),
)
