from tests.support.programs import Program, sees

PROGRAM = Program("accumulation-without-batch-idx", "2.0.9", alone=True)


def _first_gradient(value):
    return lambda seen: seen["gradients"][0] == [value.hex()]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["indices"] == [0] * 6 and _first_gradient(3 / 3)(seen)),  # of the third batch
    "without",
    right=sees(_first_gradient((1 + 2 + 3) / 3)),
)


def test_step_with_an_iterator_accumulates_whole_windows():
    """2.1.0 reads the index too early, so its windows begin one batch early. With the patch they are complete."""
    assert PROGRAM.stock("iterator").facts["indices"] == [0] * 6
    assert PROGRAM.shim("iterator").facts == PROGRAM.shim("with").facts
