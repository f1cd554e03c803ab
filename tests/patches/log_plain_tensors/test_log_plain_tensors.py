import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("log-plain-tensors", "2.6.6", alone=True)
RELEASES = ("2.0.0", "2.2.5", "2.6.6")
REPORTED = {
    "other": "twice in `training_step` with different arguments",
    "changed": "twice in `training_step` with different arguments",
    "two": "the tensor must have a single element",
    "name": "should not contain information about `dataloader_idx`",
    "hook": "You can't `self.log()` inside `on_fit_start`",
    "iterator": "`self.log(..., batch_size=...)` should be provided",
    "logger": "but have no logger configured",
    "barebones": "`Trainer(barebones=True)` is configured",
}


@pytest.mark.parametrize("case", REPORTED)
@pytest.mark.parametrize("version", RELEASES)
def test_errors_and_warnings_are_those_of_stock(version, case):
    PROGRAM.counts(case, version)
    seen = PROGRAM.shim(case, version).facts["seen"]
    assert any(REPORTED[case] in str(one) for one in seen), seen


def test_value_that_is_not_a_plain_tensor_is_logged_by_lightning():
    (stock,), (plain,) = PROGRAM.counts("plain")
    assert plain < stock / 3
    for case in ("subclass", "replaced", "rounded", "detached", "trainer"):
        (stock,), (shim,) = PROGRAM.counts(case)
        assert stock >= shim > plain


def test_wrapper_of_the_collection_gets_the_arguments_of_stock():
    (stock,), (shim,) = PROGRAM.counts("wrapped")
    assert stock > shim and any("training_step" in str(one) for one in PROGRAM.shim("wrapped").facts["seen"])


test_compiled_function_logs_as_on_stock = PROGRAM.unchanged(
    "compiled", on=("2.5.0", "2.6.6"), observed=lambda ranks: [{**rank, "counted": None} for rank in ranks]
)

test_torch_1_logs_as_on_stock = PROGRAM.unchanged(
    "torch-1", on=("2.0.0", "2.2.5"), observed=lambda ranks: [{**rank, "counted": None} for rank in ranks]
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["counted"] > 400),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 400} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
