"""With the default patches, Lightning reads no more of a program's objects than on stock."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.differential import trial

RELEASES = ("2.6.6", "2.5.6", "2.2.5", "1.9.5")
PROGRAMS = ("checkpoints", "averaging", "callers")
CALLING = ("checkpoints", "callers", "every_callback")
OBSERVED = "warnings, whose observations cannot fail"
DECLARED = {
    r"\w+\.(CHECKPOINT_NAME_LAST|_last_global_step_saved)": OBSERVED,
    r"\w+\.(_optimizers|_precision_plugin|lr_scheduler_configs|_lightning_module)": OBSERVED,
    r"\w+\.(__dict__|training|_lightning_optimizers|val_dataloader)": "tuner-cleanup-on-error, which searches as on "
    "stock if a read fails; and warnings",
    r"\w*Averag\w*\._average_model": "weight-averaging-before-start: Lightning's attribute",
    r"\w+\.(save_last|save_top_k|last_model_path|_last_checkpoint_saved)": "last-checkpoint-link-to-itself: stock "
    "reads them later; and warnings",
    r"SGD\.(param_groups|state)": "resumed-optimizer-step-device: every optimizer of torch has them",
    r"DataLoader\.(batch_sampler|__pl_saved_kwargs|worker_init_fn)": "fixes of samplers: every DataLoader has them",
    r"\w+\._trainer": "log-plain-tensors: Lightning's attribute",
}
"""Attributes that only patches read, and why that cannot harm a program."""


@pytest.fixture(scope="module", params=[pytest.param(v, marks=pytest.mark.xdist_group(v)) for v in RELEASES])
def release(request: pytest.FixtureRequest) -> Iterator[trial.Release]:
    with trial.Release(request.param) as found:
        yield found


def both(release: trial.Release, name: str) -> tuple[trial.Trace, trial.Trace]:
    """Return what a program of spies does on stock, and with the default patches."""
    program = trial.named(name, json.dumps({"kind": "reads"}))
    stock = release.run(program, False)
    if any("end raises AttributeError: module" in line for line in stock.all_lines()):
        pytest.skip(f"{release.version} lacks what the program uses")
    return stock, release.run(program, True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_else_is_read_of_the_objects_of_a_program(release: trial.Release, name: str) -> None:
    stock, patched = both(release, name)
    assert stock.reads and patched.lines == stock.lines
    read = {attribute for *_, attribute in patched.reads - stock.reads}
    assert [each for each in sorted(read) if not any(re.fullmatch(pattern, each) for pattern in DECLARED)] == []


@pytest.mark.parametrize("name", CALLING)
def test_replacement_accepts_a_stand_in_that_has_what_stock_reads(release: trial.Release, name: str) -> None:
    trace = release.run(trial.named(name, json.dumps({"kind": "stand-ins"})), True)
    calls = [json.loads(found[1]) for line in trace.all_lines() if (found := re.search("stand-in (\\[.*)", line))]
    tried = {call[0]: call for call in calls if call[1].startswith("returns")}
    assert len(tried) >= 15
    assert [call for call in calls if call[0] in tried and call[1].startswith("returns") and call[1] != call[2]] == []
