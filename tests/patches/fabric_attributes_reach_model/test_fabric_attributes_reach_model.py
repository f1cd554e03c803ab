from tests.equivalence.proof import Proof, sees

NAME = "fabric-attributes-reach-model"

PROOFS = (
    # The new layer gives 2, times 4, plus 1. On stock the old layer, scale and shift give 1.
    Proof(
        NAME,
        sees(lambda seen: seen["result"] == 1 and seen["shown"] == 4),
        case="known",
        right=sees(lambda seen: seen["result"] == 9 and seen["shown"] == 4),
    ),
    Proof(
        NAME,
        sees(lambda seen: not seen["reached"]),
        case="new",
        right=sees(lambda seen: seen["reached"] and seen["shown"] == 1),
    ),
    Proof(
        NAME,
        sees(lambda seen: seen["training"] == [False, True]),
        case="own",
        right=sees(lambda seen: seen["training"] == [False, False]),
    ),
)
