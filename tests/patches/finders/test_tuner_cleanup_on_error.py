import json

import pytest

from tests.differential.trial import Release, named
from tests.support.programs import Program

PATCH = "tuner-cleanup-on-error"

PROGRAM = Program(PATCH, "2.6.6", alone=True)


BROKE, STOPPED, MASKED = "ValueError: the step broke", "Stop: interrupted", "OSError: the data is gone"


@pytest.fixture(scope="module")
def no_search():
    """A fit without a search before it."""
    return PROGRAM.stock("no_search").facts


def stock_variant(distribution, version, case):
    """Return the state after a failed search, with its error under ``"error"``. The following fit may also fail."""
    result = PROGRAM.stock(case, version, distribution=distribution)
    assert result.observations, result
    return result.observations[0]


def assert_as_if_never_searched(distribution, version, case, no_search, error):
    result = PROGRAM.shim(case, version, distribution=distribution)
    assert result.ok, result
    observed = result.observations[0]
    assert observed["error"] == error, result
    assert observed["context"] is None, result
    # A validation that fails leaves the model in evaluation mode, with or without a search.
    training = observed["changed"].pop("training", None)
    assert training is None or case == "validate_callback", result
    for fact in ("changed", "weights_changed", "momentum", "files", "fit", "final", "ckpt_path"):
        assert observed[fact] == no_search[fact], (fact, result)


@pytest.mark.parametrize(
    ("distribution", "version", "case", "error", "left"),
    [
        ("pytorch-lightning", "2.0.0", "lr_find", BROKE, {"callbacks", "loggers", "limits", "max_steps"}),
        ("lightning", "2.5.4", "interrupt_lr", STOPPED, {"callbacks", "loggers", "limits", "max_steps", "progress"}),
        ("pytorch-lightning", "2.5.4", "scale_batch_size", BROKE, {"callbacks", "loggers", "limits", "max_steps"}),
        ("lightning", "2.1.0", "validate_callback", BROKE, {"callbacks", "loggers", "limits", "hparams"}),
    ],
)
def test_failed_search_is_undone_on_releases_without_upstream_cleanup(
    distribution, version, case, error, left, no_search
):
    stock = stock_variant(distribution, version, case)
    assert stock["error"] == error, stock
    assert left <= set(stock["changed"]), stock
    assert stock["files"], stock
    assert_as_if_never_searched(distribution, version, case, no_search, error)


@pytest.mark.parametrize(
    ("distribution", "version", "case", "error", "left"),
    [
        ("pytorch-lightning", "2.5.5", "lr_callback", BROKE, {"callbacks", "loggers", "limits", "max_steps"}),
        ("lightning", "2.6.6", "lr_find", BROKE, {"callbacks", "loggers", "limits", "max_steps"}),
        ("lightning", "2.6.6", "interrupt_batch_size", STOPPED, {"callbacks", "hparams"}),
        ("lightning", "2.6.6", "class_batch_size", BROKE, {"callbacks", "hparams"}),
    ],
)
def test_failed_search_is_undone_on_releases_with_partial_upstream_cleanup(
    distribution, version, case, error, left, no_search
):
    stock = stock_variant(distribution, version, case)
    assert stock["error"] == error, stock
    assert left <= set(stock["changed"]), stock
    assert not stock["files"] and not stock["weights_changed"], stock
    assert_as_if_never_searched(distribution, version, case, no_search, error)


@pytest.mark.parametrize("case", ["lr_loader", "batch_size_loader"])
def test_error_of_a_loader_is_raised_unmasked(case, no_search):
    stock = stock_variant("lightning", "2.6.6", case)
    assert stock["error"] == MASKED, stock
    assert_as_if_never_searched("lightning", "2.6.6", case, no_search, BROKE)


@pytest.mark.distributed
def test_rank_that_fails_alone_does_not_hang():
    stock, shim = PROGRAM.both("one_rank")
    assert stock.observations[-1]["error"] == "none arrived", stock
    assert not shim.ok, shim
    assert shim.observations[-1]["error"] == BROKE, shim


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
@pytest.mark.parametrize(
    ("part", "method"), [("Model", "load_state_dict"), ("SingleDeviceStrategy", "load_checkpoint")]
)
def test_failed_restore_is_not_repeated(part, method, version):
    spec = {"kind": "raises", "method": f"{part}.{method}", "time": 1}
    program = named("tuner", json.dumps(spec))
    with Release(version) as release:
        stock, shim = release.run(program, False), release.run(program, True, PATCH)
    calls = [[line for line in trace.all_lines() if f": call {part}.{method}(" in line] for trace in (stock, shim)]
    assert calls[0] and calls[0] == calls[1], calls
