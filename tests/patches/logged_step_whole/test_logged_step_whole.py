from tests.support.programs import Program, observes

PROGRAM = Program("logged-step-whole", "2.5.1", "pytorch-lightning", toggle="all")


def of(kind):
    return observes({"seen": [[["index"], 5, kind], [["index"], 6, kind]], "logged": ["index", "step"]})


test_metrics_without_a_step_are_unchanged = PROGRAM.unchanged("without")

PROOFS = PROGRAM.proofs(of("float"), right=of("int"))
