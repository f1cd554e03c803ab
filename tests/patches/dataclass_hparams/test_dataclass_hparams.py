from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("dataclass-hparams", "2.5.2")

test_dataclass_with_set_fields_is_unchanged = PROGRAM.unchanged("set")


def _fields_of_init(seen):
    return seen["names"] == seen["initial"] == ["rate", "width"] and seen["left_behind"] == [] and seen["width"] == 3


PROOFS = PROGRAM.proofs(ends_with("object has no attribute 'layer'"), right=sees(_fields_of_init))
