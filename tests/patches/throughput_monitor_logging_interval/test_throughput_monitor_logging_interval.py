from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("throughput-monitor-logging-interval", "2.2.0", alone=True)

test_accepted_interval_is_logged_as_on_stock = PROGRAM.unchanged("taken", check=sees(lambda seen: seen["logged"]))

REFUSED = ends_with("but these are not divisible and thus will not log anything.")
PROOFS = (
    PROGRAM.proof(REFUSED, case="default", since="2.2.0", right=sees(lambda seen: seen["steps"] == 128)),
    PROGRAM.proof(REFUSED, case="accumulated", since="2.2.0", right=sees(lambda seen: seen["steps"] == 64)),
)
