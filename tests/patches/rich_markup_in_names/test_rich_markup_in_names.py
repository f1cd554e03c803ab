from tests.support.programs import Program, only, sees

PROGRAM = Program("rich-markup-in-names", "2.6.6")

test_tables_that_rich_can_print_are_unchanged = PROGRAM.unchanged(
    "plain", "several", "markup", "long", "renderable", on=("2.0.0", "2.6.6")
)

PROOFS = PROGRAM.proofs(
    lambda result: not result.ok and "MarkupError" in result.output,
    "closing",
    recommended="plain",
    observed=only("shown"),
    right=sees(lambda seen: seen["shown"] == [True] * 3),
)
