from tests.support.programs import Program, sees

PROGRAM = Program("hparams-of-parts-alone", "2.6.6")
test_hyperparameters_of_one_object_are_unchanged = PROGRAM.unchanged("outside", "alone")
test_part_has_the_arguments_of_all_its_classes = PROGRAM.fixed(
    "derived",
    bug=sees(lambda seen: "rate" in seen["part"]),
    right=sees(lambda seen: seen["part"] == {"width": 3, "depth": 4}),
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: "rate" in seen["part"]),
    "inside",
    recommended="outside",
    right=sees(lambda seen: seen["part"] == {"depth": 3}),
)
