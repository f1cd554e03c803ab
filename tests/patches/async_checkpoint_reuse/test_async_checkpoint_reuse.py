from tests.differential.trial import difference
from tests.support.programs import Program, observes, sees

PROGRAM = Program("async-checkpoint-reuse", "2.5.3")

ERROR = "RuntimeError: cannot schedule new futures after shutdown"

test_second_validation_saves = PROGRAM.fixed(
    "validate", bug=observes({"error": ERROR}), right=sees(lambda seen: seen["files"] == ["epoch=0.ckpt"]), like="2.5.4"
)


def test_custom_executor_is_kept():
    assert not difference("own_executor", "2.5.2", "async-checkpoint-reuse")


PROOFS = PROGRAM.proofs(
    lambda result: not result.ok and observes({"error": ERROR})(result),
    "fit",
    right=sees(lambda seen: seen["files"] == ["epoch=0.ckpt", "epoch=1.ckpt"]),
)
