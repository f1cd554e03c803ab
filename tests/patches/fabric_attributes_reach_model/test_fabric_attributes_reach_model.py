from tests.equivalence.proof import Proof, sees

NAME = "fabric-attributes-reach-model"

PROOFS = (
    # 2 by the new layer, times 4, and 1 added. On stock 1, of the old layer, scale and shift.
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
