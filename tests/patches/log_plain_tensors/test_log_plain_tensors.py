import pytest

from tests.equivalence.proof import proofs, sees
from tests.support.variants import Variant, run

NEWEST = ("lightning", "2.6.6")
RELEASES = (("pytorch-lightning", "2.0.0"), ("lightning", "2.2.5"), NEWEST)


def both(release, case):
    """Return the observations, which must be equal in both variants, and the number of calls of the original."""
    stock = run("log_plain_tensors", Variant(*release), case)
    shim = run("log_plain_tensors", Variant(*release, shim=True), case, toggle="log-plain-tensors")
    assert stock.ok and shim.ok, (stock, shim)
    counts = [[rank.pop("counted") for rank in result.observations] for result in (stock, shim)]
    assert shim.observations == stock.observations
    return shim.observations[0]["seen"], *(count for (count,) in counts)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", ["other", "changed"])
def test_other_options_are_refused_as_on_stock(release, case):
    seen, _, _ = both(release, case)
    assert any("twice in `training_step` with different arguments" in str(one) for one in seen)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("two", "the tensor must have a single element"),
        ("name", "should not contain information about `dataloader_idx`"),
        ("hook", "You can't `self.log()` inside `on_fit_start`"),
        ("iterator", "`self.log(..., batch_size=...)` should be provided"),
        ("logger", "but have no logger configured"),
        ("barebones", "`Trainer(barebones=True)` is configured"),
    ],
)
@pytest.mark.parametrize("release", RELEASES)
def test_errors_and_warnings_are_those_of_stock(release, case, told):
    seen, _, _ = both(release, case)
    assert any(told in str(one) for one in seen), seen


def test_value_that_is_not_a_plain_tensor_is_logged_by_lightning():
    _, stock, plain = both(NEWEST, "plain")
    assert plain < stock / 3
    for case in ("subclass", "replaced", "rounded", "detached", "trainer"):
        _, stock, shim = both(NEWEST, case)
        assert stock >= shim > plain


def test_wrapper_of_the_collection_gets_the_arguments_of_stock():
    seen, stock, shim = both(NEWEST, "wrapped")
    assert stock > shim and any("training_step" in str(one) for one in seen)


@pytest.mark.parametrize("release", [("pytorch-lightning", "2.5.0"), NEWEST])
def test_compiled_function_logs_as_on_stock(release):
    both(release, "compiled")


PROOFS = proofs(
    "log-plain-tensors",
    sees(lambda seen: seen["counted"] > 400),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 400} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
