import pytest

from tests.support.programs import COMPILE, Program, proofs

NAME = "checkpoint-without-orig-mod"
PROGRAM = Program(NAME, "2.6.6")

test_names_without_compiled_parts_are_unchanged = PROGRAM.unchanged("none")
test_ambiguous_names_are_unchanged = PROGRAM.unchanged("twins", ends_well=False)


@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_compiled_model_resumes_from_the_checkpoint(version):
    stock, shim = PROGRAM.both("parts-resumed", version)
    assert not stock.ok and shim.facts["resumed"] == stock.observations[0]["resumed"]
    assert not any("_orig_mod" in name for name in shim.facts["saved"])


def _is_refused(result):
    return not result.ok and "_orig_mod" in result.output and "Unexpected key(s)" in result.output


PROOFS = (
    *proofs(NAME, _is_refused, "parts", recommended="{}-renamed", needs=(COMPILE,)),
    # Before 1.8.4, fit refuses a compiled model.
    *proofs(NAME, _is_refused, "whole", recommended="{}-renamed", since="1.8.4", needs=(COMPILE,)),
)
