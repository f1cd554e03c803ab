from typing import Callable

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Result


def _ranks_agree(agree: bool) -> Callable[[Result], bool]:
    weights = lambda result: [rank["weights"] for rank in result.observations]  # noqa: E731
    return lambda result: len(weights(result)) == 2 and (weights(result)[0] == weights(result)[1]) is agree


PROOFS = (
    Proof("fabric-step-methods", _ranks_agree(False), right=_ranks_agree(True)),
    Proof(
        "fabric-step-methods",
        sees(lambda seen: seen["computed_in"] == "torch.float32"),
        case="precision",
        right=sees(lambda seen: seen["computed_in"] == "torch.bfloat16"),
    ),
)
