from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("fsdp-parameter-groups", "2.0.4", options={"simulated_cuda": True})
MESSAGE = "The optimizer does not seem to reference any FSDP parameters"


def test_optimizer_without_parameters_is_refused_as_on_stock():
    assert all(MESSAGE in result.observations[0]["error"] for result in PROGRAM.both("none"))


PROOFS = PROGRAM.proofs(ends_with(MESSAGE), simulated_cuda=True, one_card=True, right=observes({"steps": 2}))
