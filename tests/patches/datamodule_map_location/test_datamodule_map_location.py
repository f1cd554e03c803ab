"""PR 17950: LightningDataModule.load_from_checkpoint refuses map_location."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

SCALE = (2.5).hex()


def test_call_without_map_location_is_unchanged():
    for shim in (False, True):
        result = run("datamodule_map_location", Variant("pytorch-lightning", "2.0.4", shim), "without")
        assert result.observations == [{"scale": SCALE, "mapped": []}], result


PROOFS = (
    Proof(
        "datamodule-map-location",
        ends_with("got multiple values for keyword argument 'map_location'"),
        right=observes({"scale": SCALE, "mapped": ["cpu"]}),
    ),
)
