from tests.support.programs import Program, observes

PROGRAM = Program("predict-own-batch-sampler", "2.2.5", alone=True)

test_other_loaders_are_unchanged = PROGRAM.unchanged("like", "torch")


def test_custom_batch_sampler_on_several_ranks_is_refused_as_on_stock():
    assert all(map(_is_refused, PROGRAM.both("ranks")))


def _is_refused(result):
    said = ("has no attribute 'batch_size'", "can't inject a (distributed) sampler into your batch sampler")
    return not result.ok and any(line in result.output for line in said)


PROOFS = PROGRAM.proofs(
    _is_refused, "own", "sub", right=observes({"predicted": [[0, 3, 6], [1, 4]], "indices": [[0, 3, 6], [1, 4]]})
)
