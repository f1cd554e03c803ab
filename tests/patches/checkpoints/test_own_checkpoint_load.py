import os
import subprocess
import sys
import tempfile

import pytest
import torch

from lightning_patches.patches.checkpoints import own_checkpoint_load
from tests.distributed.processes import run_ranks
from tests.support.programs import Program
from tests.support.variants import ROOT, Variant, directory_of

PROGRAM = Program("own-checkpoint-load", "2.6.6", "pytorch-lightning")


UNDO = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


def test_file_that_calls_a_function_is_refused():
    """The hostile file would create a directory."""
    assert PROGRAM.stock("exchanged", environment=UNDO).observations[0]["called"] is True
    assert PROGRAM.shim("exchanged").observations[0]["called"] is False


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
def test_objects_are_recognized(value, holds):
    assert own_checkpoint_load._holds_objects(value) is holds


def test_recursive_value_is_handled():
    value = {}
    value["self"] = value
    assert own_checkpoint_load._holds_objects(value) is False


@pytest.mark.distributed
@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("secret", ["", "of all ranks, and of them alone"])
def test_digest_of_another_user_is_not_trusted(version, secret):
    """A user who can write to the store and the directory can neither forge a proof nor reuse that of another file.

    As with torchrun and SLURM, no rank has started the others: they share only the secret that the user sets.
    """
    variables = {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(directory_of(Variant("lightning", version))))),
        "LIGHTNING_PATCHES_HANG_SECRET": secret,
    }
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o777)
        roles = [[role, shared] for role in ("job", "job", "attacker")]
        ended = run_ranks("foreign_note", roles, variables, timeout=120)
    assert ended.statuses == [0, 0, 0] and "proof of another file: 64" in ended.outputs[2], ended
    assert ended.outputs[1].count("foreign: refused UnpicklingError") == 4, ended
    assert "code ran: False" in ended.outputs[1], ended
    assert "has not proven to be one of this job" in ended.outputs[1], ended
    assert ("own: loaded" if secret else "own: refused UnpicklingError") in ended.outputs[1], ended


PRINT_WHAT_IS_LENT = f"""
import importlib, os
own = importlib.import_module({own_checkpoint_load.__name__!r})
os.getuid() == 0 and os.setuid({{user}})
print(own._borrowed().hex())
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs files in memory")
def test_environment_contains_the_path_of_the_secret_only(monkeypatch):
    """A program that logs its environment does not reveal the secret."""
    monkeypatch.delenv(own_checkpoint_load._LENT, raising=False)
    assert own_checkpoint_load._borrowed() == b""
    secret = own_checkpoint_load._lent()
    place = os.environ[own_checkpoint_load._LENT]
    assert len(secret) == 32 and secret.hex() not in str(os.environ)

    def lent_to(user):
        program = PRINT_WHAT_IS_LENT.format(user=user)
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert lent_to(os.getuid()) == secret.hex()
    if os.getuid() == 0:
        assert lent_to(65534) == ""
    with tempfile.TemporaryFile() as file:  # a file that is not our secret is ignored
        file.write(b"known to others")
        file.flush()
        monkeypatch.setenv(own_checkpoint_load._LENT, f"/proc/{os.getpid()}/fd/{file.fileno()}")
        assert lent_to(os.getuid()) == ""
    os.close(int(place.rpartition("/")[2]))


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
def test_secret_of_another_user_is_not_used(monkeypatch):
    """As with ``sudo -E``: the user who created the secret knows it."""
    program = f"""
import os
os.setuid(65534)
file = os.memfd_create({own_checkpoint_load._LENT!r})
os.write(file, b"theirs")
print(f"/proc/{{os.getpid()}}/fd/{{file}}", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        place = it.stdout.readline().strip()
        monkeypatch.setenv(own_checkpoint_load._LENT, place)
        with open(place, "rb") as file:
            assert file.read() == b"theirs"
        assert own_checkpoint_load._borrowed() == b""
        it.communicate("\n")
