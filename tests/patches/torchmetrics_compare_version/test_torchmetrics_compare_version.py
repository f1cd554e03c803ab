from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("torchmetrics-compare-version", "1.7.7", options={"fresh": True})

MESSAGE = "cannot import name '_compare_version' from 'torchmetrics.utilities.imports'"

test_lightning_is_imported_without_leftovers = PROGRAM.fixed(
    on=("1.7.0", "1.7.7"), bug=ends_with(MESSAGE), right=observes({"steps": 4, "rich": True, "left_behind": False})
)
