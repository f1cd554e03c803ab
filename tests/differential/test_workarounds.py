"""Programs that work around a bug do the same with the patch that fixes the bug, or warns of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lightning_patches.patches import all_patches
from tests.differential import known_differences, trial
from tests.support import expectations

WORKAROUNDS: dict[str, dict[str, str]] = {
    "2.0.6": {"param_groups_refreshed": "manual-optimizer-state", "steps_counted_once": "manual-optimizer-state",
     "fabric_optimizer_loaded": "fabric-optimizer-load-state", "dtype_put_back": "default-dtype-restored",
     "checkpoint_copied_before_resume": "checkpoint-kept-on-resume"},
    "2.2.5": {"validation_marked": "warn-resumed-run", "validations_of_resumed_epoch_marked": "warn-resumed-run",
     "validation_begun_anew": "warn-resumed-run", "epoch_loop_replaced": "warn-resumed-run",
     "progress_corrected": "mid-epoch-resume", "steps_moved_to_cpu": "resumed-optimizer-step-device",
     "torch_load_replaced": "trusted-checkpoint-load", "logged_on_the_models_device": "logged-metrics-device",
     "fitted_again": "fit-resets-should-stop", "bar_torn_down_with_care": "rich-progress-bar",
     "flag_cleared_after_search": "lr-finder-restarting-flag"},
    "2.5.3": {"autocast_cache_cleared": "autocast-after-no-grad", "workers_seeded": "worker-seed-sequence",
     "schedulers_of_skipped_epoch_stepped": "warn-skipped-epoch-schedulers",
     "found_rate_applied": "lr-finder-applies-lr", "found_batch_size_halved": "warn-batch-size-untried"},
    "2.5.5": {"cli_leaves_the_checkpoint_alone": "cli-checkpoint-of-subclass"},
    "2.6.6": {"temporary_checkpoint_trusted": "own-checkpoint-load", "compiled_names_renamed": "compiled-names",
     "plateau_in_time_with_validation": "plateau-waits-for-validation",
     "short_epoch_validated_in_time": "validation-after-short-epoch",
     "short_epoch_validated_by_hand": "validation-after-short-epoch",
     "early_stopping_after_warmup": "early-stopping-before-minimum", "batch_norm_kept_frozen": "frozen-batch-norm",
     "failed_validation_put_right": "values-of-failed-run", "failed_search_put_right": "tuner-cleanup-on-error",
     "sampler_epoch_set_by_hand": "sampler-epoch-on-resume"},
}  # fmt: skip
"""By release, the programs that work there on stock, and the patch whose bug each works around."""
AFTER_A_RUN = r"(?i)an error|Ctrl.C|resum|second fit|next fit|ran (earlier|before)|after a (search|fit)"
WITHOUT = {
    "batch-size-finder-loop-state": "a program that repairs the counters sets them to fixed values",
    "contexts-exit-on-error": "a program that restores torch's classes itself would use private names",
    "dataloader-error-unmasked": "the run ends in an error with and without the patch",
    "ddp-static-graph-manual": "its harm program is a row of its test file",
    "fabric-forward-after-error": "the attribute that its record says to delete is still there",
    "last-checkpoint-link-to-itself": "it acts in the first run",
    "remote-checkpoint-kept-on-resume": "as checkpoint-kept-on-resume",
    "summary-after-error": "a program that repairs it calls train(), which does the same again",
    "tqdm-progress-bar-resumed": "only what the bar shows",
}
"""Default patches that act on another run, and why there is no workaround that they could double."""
STILL_FAILS = "bar_torn_down_with_care"
"""Works around a part of the errors only: with the patch, nothing is left to catch."""


CASES = [
    pytest.param(version, name, patch, id=f"{version}-{name}", marks=pytest.mark.xdist_group(f"workarounds-{version}"))
    for version, programs in WORKAROUNDS.items()
    for name, patch in programs.items()
]


@pytest.fixture(scope="module")
def release(request: pytest.FixtureRequest) -> Iterator[trial.Release]:
    with trial.Release(request.param) as found:
        yield found


@pytest.mark.parametrize(("release", "name", "patch"), CASES, indirect=["release"])
def test_workaround_does_the_same_as_on_stock(release: trial.Release, name: str, patch: str) -> None:
    program = trial.named(name)
    patched = release.run(program, True, note_called=True)
    assert patch in release.patches_called(patched)
    if patched == release.run(program, False):
        return
    outcome = trial.judge(release, program)
    allowed = {patch: "no longer dies of an error"} if name == STILL_FAILS else {}
    others = {other: why for other, why in outcome.patches.items() if other not in known_differences.ONLY}
    assert others == allowed and outcome.verdict in ("same", "known difference"), outcome


def test_every_workaround_is_tested() -> None:
    written = {program.function for program in trial.functions() if program.file.endswith(".workarounds")}
    assert sorted(written) == sorted(name for programs in WORKAROUNDS.values() for name in programs)


def test_patch_that_acts_after_another_run_is_tested_with_a_workaround() -> None:
    """Except crashes: programs that end in an error have no workaround in the same run."""
    done = {patch for programs in WORKAROUNDS.values() for patch in programs.values()} | {*WITHOUT}
    for rows in expectations.tables().values():
        done |= {
            row.patch for row in rows if row.kind == "same" and re.search("itself|by.hand", f"{row.case} {row.what}")
        }
    acting = [
        patch.name
        for patch in all_patches()
        if patch.default and not patch.warns and patch.group not in ("crash", "imports")
        if re.search(AFTER_A_RUN, f"{patch.impact.summary} {patch.impact.would_tell}")
    ]
    assert [name for name in acting if name not in done] == []
