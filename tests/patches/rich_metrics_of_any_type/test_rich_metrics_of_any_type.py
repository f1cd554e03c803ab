from tests.support.programs import Program, ends_with, observes, sees

PROGRAM = Program("rich-metrics-of-any-type", "2.5.6", alone=True)
test_numbers_and_texts_are_displayed_as_on_stock = PROGRAM.unchanged(
    "number", "text", on=("2.1.0", "2.5.6"), check=sees(lambda seen: seen["shown"] in (["0.123"], ["well"]))
)

test_tensor_with_several_values_does_not_end_the_training = PROGRAM.fixed(
    "tensor",
    bug=ends_with("unsupported format string passed to Tensor.__format__"),
    right=sees(lambda seen: seen["steps"] == 2),
)

PROOFS = tuple(
    PROGRAM.proof(
        ends_with(f"TypeError: unsupported format string passed to {kind}.__format__"),
        case=case,
        right=observes({"steps": 2, "shown": [shown]}),
    )
    for case, kind, shown in (("none", "NoneType", "None"), ("list", "list", "[1, 2]"), ("dict", "dict", "{'a': 1}"))
)
