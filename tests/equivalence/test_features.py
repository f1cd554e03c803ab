"""Features that no release has and no patch adds: the workarounds from ``diagnose`` work on all releases."""

import pytest

from lightning_patches.cli.diagnose import candidates, read
from tests.support.variants import Variant, run

ONE, TWO = (1.0).hex(), (2.0).hex()
RELEASES = pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])


@RELEASES
@pytest.mark.parametrize(
    ("case", "observed"),
    [
        ("validation", {"seen": [2, 4, 6, 8], "logged": {}}),
        ("dict", {"seen": [], "logged": {"train/a": ONE, "train/b": TWO}}),
    ],
)
def test_suggested_workarounds_work(version, case, observed):
    result = run("features", Variant("pytorch-lightning", version), case)
    assert result.ok and result.observations == [observed], result


@RELEASES
def test_stock_validates_at_other_steps_when_gradients_are_accumulated(version):
    """Ten batches, with gradients accumulated over four, make three steps."""
    result = run("features", Variant("pytorch-lightning", version), "drift")
    assert result.ok and result.observations[0]["seen"] != [2, 4, 6, 8], result


@RELEASES
def test_obvious_replacement_is_refused_and_diagnosed(version):
    result = run("features", Variant("pytorch-lightning", version), "dict-refused")
    (match,) = [match for match in candidates.find(read.from_text("", result.output)) if match.certain_ground]
    assert not result.ok and match.record.name == "log-of-a-dict", result
