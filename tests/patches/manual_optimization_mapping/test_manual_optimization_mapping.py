from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("manual-optimization-mapping", "2.5.2", "pytorch-lightning")

SEEN = {"seen": [[["loss", "width"], 3, False]]}

test_dict_is_accepted_as_on_stock = PROGRAM.unchanged("dict", check=observes(SEEN))

PROOFS = PROGRAM.proofs(
    ends_with("In manual optimization, `training_step` must either return a Tensor or have no return"),
    right=observes(SEEN),
)
