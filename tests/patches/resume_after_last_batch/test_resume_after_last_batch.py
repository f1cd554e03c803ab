"""Issue 19617: a run with max_steps is resumed where an epoch ended."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

RESUMED = [f"{epoch}.{batch}: {batch}" for epoch in (1, 2) for batch in (0, 1, 2)]


def seen(case, shim=False, version="2.6.6"):
    result = run("resume_after_last_batch", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def batches(seen):
    return [line for line in seen["seen"] if ":" in line]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_resumed_run_equals_the_uninterrupted_run(version):
    whole = seen("whole", version=version)
    assert batches(whole) == RESUMED
    assert seen("", version=version) != whole
    assert seen("", shim=True, version=version) == whole


@pytest.mark.parametrize("version", ["2.4.0", "2.6.6"])
@pytest.mark.parametrize("case", ["middle", "done"])
def test_run_resumed_within_an_epoch_is_unchanged(case, version):
    assert seen(case, version=version) == seen(case, shim=True, version=version)


PROOFS = tuple(
    Proof(
        "resume-after-last-batch",
        sees(lambda seen: "1.0: 0" in seen["seen"] and batches(seen) != RESUMED or "1.3: 0" in seen["seen"]),
        case=case,
        recommended=recommended,
        right=sees(lambda seen: batches(seen) == RESUMED and (seen["steps"], seen["epoch"]) == (9, 3)),
    )
    for case, recommended in (("", "epochs"), ("saved", "saved-epochs"))
)
