from tests.support.programs import Program, observes, proofs, sees

PATCH = "hyperparameters-of-mixin"


test_method_of_a_mixin_is_unchanged = Program(PATCH, "1.8.6").unchanged("method")


def _lost(seen):
    return seen["saving"] == {} and seen["between"] == {"leaf": 5}


PROOFS = proofs(
    PATCH,
    sees(_lost),
    right=observes({"saving": {"width": 2}, "between": {"leaf": 5, "width": 4, "depth": 3}, "holder": {"leaf": 9}}),
)
