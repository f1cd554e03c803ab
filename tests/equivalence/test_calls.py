"""What replacements are seen to call of Lightning is what their records name. Each run of the matrix looks again."""

import sys

import pytest

from tests.equivalence import matrix
from tests.support.arms import Arm, Result, run


@pytest.mark.skipif(sys.version_info < (3, 11), reason="calls are noted with Python 3.11 and later")
@pytest.mark.parametrize("version", ["first", "last"])
@pytest.mark.parametrize("patch", ["lr-finder-applies-lr", "checkpoint-after-validation"])
def test_what_is_called_is_named(patch, version):
    proof = matrix.proofs([patch])[0]
    affected = matrix.affected_by(proof, "pytorch-lightning")
    arm = Arm("pytorch-lightning", affected[0 if version == "first" else -1], shim=True)
    result = run(proof.scenario, arm, proof.case, toggle=patch, note_executed=True)
    assert result.ok and len(result.called) > 2, result
    assert matrix.calls_not_in_records(result, [patch]) == []


def test_what_is_not_named_is_told():
    called = {
        ("pytorch/trainer/trainer.py", "Trainer.optimizers"),  # named
        ("pytorch/tuner/lr_finder.py", "_LRFinder.suggestion"),
        ("fabric/__init__.py", "<module>"),  # imported, and not called
    }
    result = Result(0, "", called=frozenset(called))
    assert matrix.calls_not_in_records(result, ["lr-finder-applies-lr"]) == [
        "pytorch.tuner.lr_finder:_LRFinder.suggestion()"
    ]
    assert matrix.calls_not_in_records(Result(0, ""), ["lr-finder-applies-lr"]) == []
