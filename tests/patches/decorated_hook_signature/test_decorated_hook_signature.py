from tests.support.programs import Program, ends_with, sees

NAME = "decorated-hook-signature"
PROGRAM = Program(NAME, "2.0.2", toggle="default")
TRAINS = sees(lambda seen: seen["steps"] == 3)


def test_decorated_hook_with_batch_idx_gets_it_by_default():
    result = PROGRAM.shim("dropped")
    assert TRAINS(result), result


test_step_with_two_decorators_trains = PROGRAM.fixed(
    "twice", bug=lambda result: not result.ok, right=lambda result: TRAINS(result), toggle=NAME
)

PROOFS = PROGRAM.proofs(ends_with("takes 2 positional arguments but 3 were given"), "batch", "iterator", right=TRAINS)
