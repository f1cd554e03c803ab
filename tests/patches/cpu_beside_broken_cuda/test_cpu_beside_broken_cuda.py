from tests.support.programs import Program, observes

PROGRAM = Program("cpu-beside-broken-cuda", "2.1.3", "pytorch-lightning")

BROKEN = "The NVIDIA driver on your system is too old"
RIGHT = {"error": None, "steps": 2, "asked": []}

test_missing_driver_is_not_queried_as_on_stock = PROGRAM.unchanged("none", check=observes(RIGHT))
test_working_driver_is_queried_as_on_stock = PROGRAM.unchanged("works", check=observes({**RIGHT, "asked": ["0"]}))

PROOFS = PROGRAM.proofs(observes({"error": BROKEN, "steps": 0, "asked": ["0"]}), "broken", right=observes(RIGHT))
