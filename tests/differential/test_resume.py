"""With exact-resume, a resumed run equals the uninterrupted run wherever it does so on stock, and in more cases."""

from __future__ import annotations

import pytest

from tests.differential import resume

SAMPLE = (
    "plain", "no validation, step scheduler", "StepLR by epoch", "plateau by epoch", "EarlyStopping and plateau",
    "ModelCheckpoint, best", "accumulation with a rest", "manual optimization, two optimizers",
    "validated every three batches", "max_steps", "stream", "CombinedLoader, min_size", "one batch",
    "callback with state",
)  # fmt: skip


@pytest.mark.parametrize("version", ["2.6.6"])
def test_stopped_and_resumed_runs_equal_the_uninterrupted_run(version: str) -> None:
    found = resume.differences(version, "default,exact-resume", SAMPLE)
    assert {name: stops for name, stops in found.items() if stops} == {}


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_known_difference_of_a_resumed_run_is_detected_on_stock(version: str) -> None:
    """Shows that the test can fail."""
    found = resume.differences(version, "stock", ("plain", "stateful"))
    assert all("last batch" in stops for stops in found.values())


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_resumed_run_that_differs_gets_the_warning(version: str) -> None:
    names = [name for name in SAMPLE if not name.startswith("ModelCheckpoint")]  # whose current_score decides nothing
    found = resume.differences(version, "warn-resumed-run", (*names, "stateful", "SWA", "reload every two epochs"))
    silent = {name: [stop for stop, (*_, warned) in stops.items() if not warned] for name, stops in found.items()}
    assert found["plain"] and {name: stops for name, stops in silent.items() if stops} == {}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_no_configuration_is_worse_than_on_stock(version: str) -> None:
    stock, patched = (resume.differences(version, patches) for patches in ("stock", "default"))
    worse = {name: set(patched[name]) - set(stops) for name, stops in stock.items()}
    assert not {name for name, stops in worse.items() if stops}
