from tests.support.programs import Program, only, sees

PROGRAM = Program("cli-linked-arguments", "2.5.1")


def test_nested_linked_argument_is_saved():
    assert PROGRAM.stock("nested").facts["loaded"] == 0
    for case in ("", "subclass"):
        assert PROGRAM.shim(case).facts["saved"] == PROGRAM.stock(case, "2.5.2").facts["saved"]
    assert PROGRAM.shim("nested").facts == PROGRAM.stock("nested", "2.5.2").facts


# The linked object cannot be pickled, or the link was applied when the arguments were parsed.
test_checkpoint_is_unchanged = PROGRAM.unchanged("object", "parse")

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: (seen["made"], seen["loaded"]) == (7, 0)),
        case=case,
        since=since,
        observed=only("made", "loaded"),
        right=sees(lambda seen: (seen["made"], seen["loaded"]) == (7, 7)),
    )
    # 2.3 saves a class in a form that cannot be loaded.
    for case, since in (("", ""), ("subclass", "2.4.0"))
)
