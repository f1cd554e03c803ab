from tests.support.programs import Program, observes

PROGRAM = Program("predict-batch-sampler-constructor", "2.6.6", alone=True)
REFUSALS = (
    "__init__() got an unexpected keyword argument",
    "__init__() missing 1 required positional argument",
    "does not have an argument called `sampler.`",
)

test_batch_sampler_with_the_arguments_of_torch_is_unchanged = PROGRAM.unchanged("accepts")


def test_batch_sampler_on_several_ranks_is_refused_as_on_stock():
    assert all(map(_is_refused, PROGRAM.both("ranks")))


def test_error_of_the_batch_sampler_is_shown():
    shim = PROGRAM.shim("broken")
    assert not shim.ok and "TypeError: the batches broke" in shim.output, shim


def _is_refused(result):
    return not result.ok and any(line in result.output for line in REFUSALS)


PROOFS = PROGRAM.proofs(
    _is_refused,
    "",
    "more",
    "hook",
    recommended="accepts",
    right=observes({"predicted": [[0, 3, 6], [1, 4]], "indices": [[0, 3, 6], [1, 4]]}),
)
