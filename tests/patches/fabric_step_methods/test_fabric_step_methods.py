"""PR 17424: in Fabric, training_step() of a LightningModule goes past DDP."""

from typing import Callable

from tests.equivalence.proof import Proof
from tests.support.arms import Result


def _ranks_agree(agree: bool) -> Callable[[Result], bool]:
    weights = lambda result: [rank["weights"] for rank in result.observations]  # noqa: E731
    return lambda result: len(weights(result)) == 2 and (weights(result)[0] == weights(result)[1]) is agree


PROOFS = (Proof("fabric-step-methods", _ranks_agree(False), right=_ranks_agree(True)),)
