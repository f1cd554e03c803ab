from tests.support.programs import Program, sees

PROGRAM = Program("fabric-step-methods", "2.0.1")


def ranks_agree(result):
    first, second = (rank["weights"] for rank in result.observations)
    return first == second


def computes_in(dtype):
    return sees(lambda seen: seen["computed_in"] == f"torch.{dtype}")


PROOFS = (
    PROGRAM.proof(lambda result: not ranks_agree(result), right=ranks_agree),
    PROGRAM.proof(computes_in("float32"), case="precision", right=computes_in("bfloat16")),
)
