from tests.support.programs import Program

PROGRAM = Program("warn-fit-resumes-unasked", "2.6.6")

FILE = "saved/on_exception.ckpt', although you passed no ckpt_path: with the callback OnExceptionCheckpoint"
test_fit_that_resumes_is_warned_of = PROGRAM.warns("", says=FILE, on=("2.0.0", "2.6.6"))
test_other_fits_give_no_warning = PROGRAM.unchanged("first", "last", "none")
