"""A run is resumed from a checkpoint that was saved on the last batch of an epoch."""

import json

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

NAME = "resume-on-last-batch"


def seen(case, shim=False, version="2.6.6"):
    result = run("resume_on_last_batch", Variant("pytorch-lightning", version, shim), case, toggle=NAME)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.5.0", "2.6.6"])
@pytest.mark.parametrize("case", ["plain: within", "plain: epoch end", "plain: validation", "stateful: validation"])
def test_run_resumed_elsewhere_is_unchanged(case, version):
    assert seen(case, shim=True, version=version) == seen(case, version=version)


@pytest.mark.parametrize("stop", ["last batch", "validation"])
@pytest.mark.parametrize("name", ["stateful, lazy", "CombinedLoader, stateful streams", "stream", "stateful stream"])
def test_epoch_after_a_restored_pass_has_all_batches(name, stop):
    assert seen(f"{name}: {stop}", shim=True) == seen(f"{name}: {stop}, whole")


def begins_in_epoch(number):
    """True if the first event of the resumed run is in this epoch."""
    return sees(lambda seen: json.loads(seen["events"][0])[1] == number)


PROOFS = tuple(
    Proof(
        NAME,
        shows_bug=begins_in_epoch(2),
        right=begins_in_epoch(1),
        case=f"{name}: last batch",
        recommended=f"{name}: last batch, whole",
    )
    for name in ("plain", "no validation", "validated every two batches", "stateful")
)
