import pytest

from tests.support.programs import Program, ends_with, only

PROGRAM = Program("trusted-checkpoint-cli", "2.6.6")
REFUSED = "Weights only load failed"


@pytest.mark.parametrize(("version", "case"), [("2.5.5", ""), ("2.6.6", ""), ("2.6.6", "whole")])
def test_file_in_a_trusted_directory_is_read(version, case):
    result = PROGRAM.shim(case, version)
    assert result.ok, result
    assert result.observations == [{"width": 5, "called": False, "allowed": [], "warnings": []}], "only for this file"


def test_file_in_another_directory_is_refused_as_on_stock():
    result = PROGRAM.shim("elsewhere")
    assert not result.ok and REFUSED in result.output, result
    assert "width" not in result.observations[0]


@pytest.mark.parametrize("version", ["2.5.5", "2.6.6"])
def test_link_that_changes_during_the_check_is_harmless(version):
    result = PROGRAM.shim("swapped", version)
    assert result.ok and result.observations[0]["width"] == 5, result


test_plain_file_is_read_as_on_stock = PROGRAM.unchanged("plain", "allowed")

PROOFS = PROGRAM.proofs(ends_with(REFUSED), recommended="allowed", observed=only("width"))
