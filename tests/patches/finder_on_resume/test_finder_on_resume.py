import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("finder-on-resume", "2.6.6")


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_batch_size_that_is_not_in_the_checkpoint_causes_a_warning(version):
    assert PROGRAM.stock("unsaved", version).facts["epochs"][0][:2] == [0, 0]
    patched = PROGRAM.shim("unsaved", version).facts
    assert [start[0] for start in patched["epochs"]] == [2] and patched["epochs"][0][3] == 2
    (warning,) = patched["warnings"]
    assert "the checkpoint has no hyperparameter 'batch_size'" in warning


test_subclass_tuner_and_new_run_are_unchanged = PROGRAM.unchanged("subclass", "tuner", "fresh")


def _restarts(seen):
    return [start[:2] for start in seen["epochs"][-3:]] == [[0, 0], [1, 0], [2, 0]]


def _continues(seen):
    return [start[0] for start in seen["epochs"]] == [2] and seen["epochs"][0][3] == seen["size"]


def test_rates_of_the_search_can_be_read_after_a_resume():
    stock, shim = PROGRAM.both("lr-report")
    assert stock.facts["rates"] == shim.facts["rates"] == 20


PROOFS = PROGRAM.proofs(sees(_restarts), "lr", "batch", recommended="{}-without", alone=True, right=sees(_continues))
