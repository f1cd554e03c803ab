from tests.support.programs import Program, Proof, ends_with, sees

NAME = "throughput-monitor-logging-interval"
PROGRAM = Program(NAME, "2.2.0", alone=True)

test_accepted_interval_is_logged_as_on_stock = PROGRAM.unchanged("taken", check=sees(lambda seen: seen["logged"]))

REFUSED = ends_with("but these are not divisible and thus will not log anything.")
PROOFS = (
    Proof(NAME, REFUSED, case="default", since="2.2.0", right=sees(lambda seen: seen["steps"] == 128)),
    Proof(NAME, REFUSED, case="accumulated", since="2.2.0", right=sees(lambda seen: seen["steps"] == 64)),
)
