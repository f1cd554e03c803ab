from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("command-line-descriptions", "1.6.1", options={"fresh": True})

test_command_line_starts = PROGRAM.fixed(
    on=("1.6.0", "1.6.1"),
    bug=ends_with("'module' object is not callable"),
    right=observes({"lr": (0.2).hex(), "steps": 4}),
)
