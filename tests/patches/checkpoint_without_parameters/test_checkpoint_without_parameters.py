import pytest

from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("checkpoint-without-parameters", "2.0.9")

REFUSED = "contains no parameters."


@pytest.mark.parametrize(("case", "error"), [("lost", "Missing key(s) in state_dict"), ("lost-loosely", REFUSED)])
@pytest.mark.parametrize("version", ["2.0.2", "2.0.9"])
def test_file_without_weights_is_refused(version, case, error):
    for result in PROGRAM.both(case, version):
        assert not result.ok and error in result.observations[0]["error"], result


PROOFS = PROGRAM.proofs(ends_with(REFUSED), right=observes({"value": 3, "device": "cpu"}))
