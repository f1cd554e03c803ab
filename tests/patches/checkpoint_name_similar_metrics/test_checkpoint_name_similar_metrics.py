"""PR 17610: a checkpoint's file name asks for two metrics, and the name of one begins with that of the other."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ERROR = "ValueError: Only '.' or '[' may follow ']' in format field specifier"
LOST = {"error": ERROR, "files": []}
NAMES = {
    "{epoch}-{epoch_loss:.2f}": ["epoch=0-epoch_loss=0.25.ckpt", "epoch=1-epoch_loss=0.25.ckpt"],
    "{epoch}-{epoch_loss:.2f}-{none}": ["epoch=0-epoch_loss=0.25-none=0.ckpt", "epoch=1-epoch_loss=0.25-none=0.ckpt"],
    "plain:{epoch}-{epoch_loss:.2f}": ["0-0.25.ckpt", "1-0.25.ckpt"],
    "{loss:.2f}-{loss/train:.2f}": ["loss=0.75-loss/train=0.50-v1.ckpt", "loss=0.75-loss/train=0.50.ckpt"],
}


def seen(version, case, shim=False):
    result = run("checkpoint_name_similar_metrics", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", NAMES)
def test_checkpoints_have_the_formatted_names(case):
    assert seen("2.0.2", case) == LOST
    assert seen("2.0.2", case, shim=True) == {"error": None, "files": NAMES[case]} == seen("2.0.3", case)


@pytest.mark.parametrize("case", ["", "{loss/train:.2f}-{loss:.2f}", "{epoch}-{step}-{loss:.2f}", "{epoch}-{epoch}"])
def test_correct_names_are_unchanged(case):
    stock = seen("2.0.0", case)
    assert stock["error"] is None and len(stock["files"]) == 2
    assert seen("2.0.0", case, shim=True) == stock


FAILS = sees(lambda seen: seen == LOST)
PROOFS = tuple(Proof("checkpoint-name-similar-metrics", FAILS, case=case) for case in NAMES)
