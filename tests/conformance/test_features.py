"""What no release does, and nothing is patched for: the way round that ``diagnose`` tells does it on all of them."""

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
def test_the_way_round(version, case, observed):
    result = run("features", Variant("pytorch-lightning", version), case)
    assert result.ok and result.observations == [observed], result


@RELEASES
def test_validations_drift_against_the_steps(version):
    """Of ten batches, of which four are accumulated, come three steps."""
    result = run("features", Variant("pytorch-lightning", version), "drift")
    assert result.ok and result.observations[0]["seen"] != [2, 4, 6, 8], result


@RELEASES
def test_what_is_tried_first_is_refused_and_found(version):
    result = run("features", Variant("pytorch-lightning", version), "dict-refused")
    (match,) = [match for match in candidates.find(read.taken_apart("", result.output)) if match.kind == "found"]
    assert not result.ok and match.record.name == "log-of-a-dict", result
