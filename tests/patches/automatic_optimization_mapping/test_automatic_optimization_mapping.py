from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("automatic-optimization-mapping", "2.0.9", alone=True)


def test_mapping_trains_like_a_dict():
    assert PROGRAM.shim().facts == PROGRAM.stock("dict").facts == PROGRAM.shim("dict").facts


def test_mapping_without_a_loss_is_refused_like_a_dict():
    assert "the 'loss' key needs to be present" in PROGRAM.shim("lossless").output


PROOFS = PROGRAM.proofs(
    ends_with("In automatic optimization, `training_step` must return a Tensor"),
    right=sees(lambda seen: seen["seen"] == [[["loss", "width"], 3, False]] * 2),
)
