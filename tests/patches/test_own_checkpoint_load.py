"""The run's own checkpoints, when the hyperparameters hold an object of the user's (torch 2.6 and later)."""

import io

import pytest
import torch

from lightning_patches.patches import own_checkpoints
from tests.equivalence.proof import Proof, ends_with, only
from tests.support.arms import Arm, run

SCENARIO, REFUSED = "own_checkpoint_load", "Weights only load failed"
UNDO = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


def seen(version, case, shim=True, **options):
    return run(SCENARIO, Arm("pytorch-lightning", version, shim), case, **options)


def test_every_rank_reads_what_rank_zero_wrote():
    assert REFUSED in seen("2.6.6", "ddp", shim=False).output
    shim = seen("2.6.6", "ddp")
    assert shim.ok and len(shim.observations) == 2, shim
    assert all(rank["tested"] for rank in shim.observations)


def test_a_checkpoint_of_several_blocks():
    result = seen("2.6.6", "large")
    assert result.ok, result


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("case", ["exchanged", "tampered", "copied"])
def test_what_the_run_did_not_write_is_refused(version, case, tmp_path):
    result = seen(version, case)
    assert not result.ok and REFUSED in result.output, result
    assert "loaded" not in result.observations[0]
    warned = any("not what this run wrote" in text for text in result.observations[0]["warnings"])
    assert warned is (case != "copied")


def test_a_file_that_calls_is_not_let_call():
    """The hostile file makes a directory when it is let."""
    assert seen("2.6.6", "exchanged", shim=False, environment=UNDO).observations[0]["called"] is True
    assert seen("2.6.6", "exchanged").observations[0]["called"] is False


def test_weights_only_is_obeyed():
    result = seen("2.6.6", "strict")
    assert not result.ok and REFUSED in result.output, result


def test_a_checkpoint_without_objects_is_left_alone():
    assert seen("2.6.6", "plain").observations == seen("2.6.6", "plain", shim=False).observations


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ({"a": [1, 2.0, None, "x", (True, b"")], "b": {"c": torch.ones(2)}}, False),
        ({"a": object()}, True),
        ({object(): 1}, True),
        ([{"a": (1, [torch.nn.Linear(1, 1)])}], True),
        ({"dtype": torch.float32, "size": torch.Size([2])}, False),
    ],
)
def test_what_counts_as_an_object(value, holds):
    assert own_checkpoints._holds_objects(value) is holds


def test_a_value_that_holds_itself():
    value = {}
    value["self"] = value
    assert own_checkpoints._holds_objects(value) is False


def test_reading_in_pieces_is_reading_the_file(tmp_path):
    content = bytes(range(256)) * 12345
    block = own_checkpoints._BLOCK
    path = tmp_path / "file"
    with open(path, "wb") as file:
        noting = own_checkpoints._Noting(file)
        for part in (
            content[:7],
            content[7 : block + 9],
            memoryview(content)[block + 9 : 2 * block],
            content[2 * block :],
        ):
            noting.write(part)
    note = noting.note()
    assert note.size == len(content) == path.stat().st_size
    assert note.digests == [own_checkpoints._digest(content[at : at + block]) for at in range(0, len(content), block)]
    with open(path, "rb", buffering=0) as file:
        whole = io.BufferedReader(own_checkpoints._Verified(file, note))
        assert whole.read() == content
        assert whole.seek(-5, 2) == len(content) - 5 and whole.read() == content[-5:]
        assert whole.seek(block - 3) and whole.read(7) == content[block - 3 : block + 4]
    path.write_bytes(content + b"more")
    with open(path, "rb", buffering=0) as file:
        assert own_checkpoints._Verified(file, note).read() == content, "only what was noted is read"
    path.write_bytes(content[:-1])
    with open(path, "rb", buffering=0) as file:
        blocks = own_checkpoints._Verified(file, note)
        with pytest.raises(OSError, match="has changed"):
            io.BufferedReader(blocks).read()
        assert blocks.changed


PROOFS = tuple(
    Proof(
        "own-checkpoint-load",
        ends_with(REFUSED),
        case=case,
        observed=only(*observed),
        recommended=case,
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    )
    for case, observed in (("best", ("tested",)), ("last", ("steps",)), ("load", ("loaded", "same")))
)
