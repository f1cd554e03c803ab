from tests.support.programs import Program, observes, sees

PROGRAM = Program("checkpoint-extra-state", "2.0.2")

ERROR = "AttributeError: 'dict' object has no attribute 'device'"

test_state_dict_that_starts_with_a_tensor_loads_as_on_stock = PROGRAM.unchanged(
    "layer", "none", check=sees(lambda seen: (seen["error"], seen["loaded"]) == (None, ["cpu", True]))
)

PROOFS = tuple(
    PROGRAM.proof(
        observes({"error": ERROR, "loaded": None, "remembered": None}),
        case=case,
        right=observes({"error": None, "loaded": ["cpu", case == "model"], "remembered": "seven"}),
    )
    for case in ("model", "only")
)
