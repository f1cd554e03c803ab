from tests.support.programs import Program, only, sees

PROGRAM = Program("hparams-of-parts", "2.6.6")

test_hparams_of_an_object_without_parts_are_unchanged = PROGRAM.unchanged("outside", "alone")
test_hparams_of_the_whole_keep_their_names = PROGRAM.unchanged(
    "inside", observed=only("keys"), check=sees(lambda seen: "part" in seen["keys"])
)


def test_part_has_the_hparams_of_its_most_derived_class():
    assert PROGRAM.shim("derived").facts["part"] == {"width": 3, "depth": 1}


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["part"] == {"width": 7, "depth": 5}),
    "inside",
    recommended="outside",
    observed=only("part", "whole"),
    right=sees(lambda seen: seen["part"] == {"width": 3, "depth": 1}),
)
