from tests.equivalence.proof import ends_with, observes, proofs
from tests.support.programs import Program

PATCH = "hyperparameters-made-in-method"
BUG = ends_with("KeyError: 'depth'")
RIGHT = observes({"teacher": {"depth": 2}, "student": {"width": 4}})

# The function with the bug has another result or name in each of these releases.
test_hyperparameters_are_saved_in_releases_before_1_9_4 = Program(PATCH, "1.9.3").fixed(
    on=("1.9.0", "1.9.3"), bug=BUG, right=RIGHT
)

PROOFS = proofs(PATCH, BUG, right=RIGHT)
