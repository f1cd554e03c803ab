from typing import Any, Callable

from tests.equivalence.proof import Proof, sees


def _evaluated_with(state: int) -> Callable[[Any], bool]:
    return sees(lambda seen: seen["evaluated_with"] == state)


PROOFS = tuple(
    Proof("callback-state-in-evaluation", _evaluated_with(without), case=case, right=_evaluated_with(2))
    for case, without in (("validate", 0), ("test", 0), ("predict", 0), ("fitted", 3))
)
