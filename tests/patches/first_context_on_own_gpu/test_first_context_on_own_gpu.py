from typing import Callable

from tests.equivalence.proof import proofs
from tests.support.variants import Result


def _devices(*current: int) -> Callable[[Result], bool]:
    """Return a check of the ranks' current devices; 0 and 1 are right."""
    return lambda result: [(rank["current"], rank["own"]) for rank in result.observations] == [*zip(current, (0, 1))]


PROOFS = proofs(
    "first-context-on-own-gpu", _devices(0, 0), "trainer", "fabric", simulated_cuda=True, right=_devices(0, 1)
)
