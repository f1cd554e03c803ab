from tests.support.programs import Program, observes

PROGRAM = Program("warn-empty-loader-in-cycle", "2.6.6", "pytorch-lightning")

NAMES = "one of these loaders is empty when it starts again: number 1 (DataLoader). Remove it"
test_warning_names_the_empty_loader = PROGRAM.warns("", "once", says=NAMES, on=("2.0.0", "2.6.6"))
test_warning_is_absent_if_all_loaders_have_batches = PROGRAM.unchanged(
    "none", check=observes({"steps": 6, "warnings": []})
)
