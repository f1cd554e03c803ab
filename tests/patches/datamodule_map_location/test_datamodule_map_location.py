from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("datamodule-map-location", "2.0.4")

SCALE = (2.5).hex()

test_call_without_map_location_is_unchanged = PROGRAM.unchanged(
    "without", check=observes({"scale": SCALE, "mapped": []})
)

PROOFS = PROGRAM.proofs(
    ends_with("got multiple values for keyword argument 'map_location'"),
    right=observes({"scale": SCALE, "mapped": ["cpu"]}),
)
