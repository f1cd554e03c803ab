from tests.support.programs import Program, only, sees

PROGRAM = Program("rich-markup-in-names", "2.6.6")
ON = ("2.0.0", "2.6.6")
test_tables_of_plain_names_are_unchanged = PROGRAM.unchanged(
    "plain", "several", "plain-terminal", "several-terminal", on=ON
)
test_tables_of_names_with_spaces_are_unchanged = PROGRAM.unchanged("words", on=ON)
test_long_names_are_folded_in_a_terminal = PROGRAM.fixed(
    "long-terminal", bug=sees(lambda seen: not all(seen["shown"])), right=sees(lambda seen: all(seen["shown"])), on=ON
)

PROOFS = tuple(
    PROGRAM.proof(
        (lambda result: not result.ok and "MarkupError" in result.output)
        if case == "closing"
        else sees(lambda seen: not all(seen["shown"])),
        case=case,
        recommended="plain",
        observed=only("shown", "width"),
        right=sees(lambda seen: seen["shown"] == [True] * 3),
    )
    for case in ("brackets", "closing", "long")
)
