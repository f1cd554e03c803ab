from tests.equivalence.proof import Proof, ends_with, observes, sees
from tests.support.programs import Program

NAME = "fsdp-parameter-groups"
PROGRAM = Program(NAME, "2.0.4", options={"simulated_cuda": True})
MESSAGE = "The optimizer does not seem to reference any FSDP parameters"

test_optimizer_without_parameters_is_refused_as_on_stock = PROGRAM.unchanged(
    "none", check=sees(lambda seen: MESSAGE in seen["error"])
)

PROOFS = (Proof(NAME, ends_with(MESSAGE), simulated_cuda=True, one_card=True, right=observes({"steps": 2})),)
