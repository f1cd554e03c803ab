from tests.support.programs import Program, observes

PROGRAM = Program("csv-logger-relative-directory", "2.0.2", toggle="all")

RIGHT = {"versions": [0, 1, 2], "folders": ["version_0", "version_1", "version_2"]}

test_trainer_logger_of_an_old_release_is_fixed = PROGRAM.fixed(
    bug=observes({"versions": [0, 0, 0], "folders": ["version_0"]}), right=observes(RIGHT)
)

PROOFS = PROGRAM.proofs(observes({"versions": [0, 0, 0], "folders": ["version_0"]}), "fabric", right=observes(RIGHT))
