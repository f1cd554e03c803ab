"""A finder callback in a resumed run: the run starts at epoch 0 again, with a new optimizer."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(case, version="2.6.6", shim=True):
    result = run("finder_on_resume", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_batch_size_that_is_not_in_the_checkpoint_is_warned_of(version):
    assert seen("unsaved", version, shim=False)["epochs"][0][:2] == [0, 0]
    patched = seen("unsaved", version)
    assert [start[0] for start in patched["epochs"]] == [2] and patched["epochs"][0][3] == 2
    (warning,) = patched["warnings"]
    assert "the checkpoint has no hyperparameter 'batch_size'" in warning


@pytest.mark.parametrize("case", ["subclass", "tuner", "fresh"])
def test_subclass_tuner_and_new_run_are_unchanged(case):
    assert seen(case) == seen(case, shim=False)


def _restarts(seen):
    return [start[:2] for start in seen["epochs"][-3:]] == [[0, 0], [1, 0], [2, 0]]


def _continues(seen):
    return [start[0] for start in seen["epochs"]] == [2] and seen["epochs"][0][3] == seen["size"]


PROOFS = tuple(
    Proof(
        "finder-on-resume",
        sees(_restarts),
        case=case,
        recommended=f"{case}-without",
        alone=True,
        right=sees(_continues),
    )
    for case in ("lr", "batch")
)
