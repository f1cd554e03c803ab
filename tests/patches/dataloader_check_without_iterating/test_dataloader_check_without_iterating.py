from tests.support.programs import Program, sees

PROGRAM = Program("dataloader-check-without-iterating", "2.0.7", alone=True)


def _started(train, validation):
    return sees(lambda seen: (seen["train"], seen["validation"]) == (train, validation))


PROOFS = (PROGRAM.proof(_started(3, 3), case="fit"), PROGRAM.proof(_started(0, 2), case="validate"))


def test_object_that_is_not_iterable_is_refused():
    shim = PROGRAM.shim("invalid")
    assert not shim.ok, shim
    assert shim.observations[0]["error"].startswith("TypeError: An invalid dataloader was passed"), shim
