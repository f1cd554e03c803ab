from tests.support.programs import Program, observes

PROGRAM = Program("error-kept-in-ddp", "2.0.4")

test_error_with_a_message_is_unchanged = PROGRAM.unchanged("text", check=observes({"error": "ValueError: a text"}))

PROOFS = PROGRAM.proofs(
    lambda result: "TypeError: expected string or bytes-like object" in result.observations[0]["error"],
    right=observes({"error": "KeyError: 3"}),
)
