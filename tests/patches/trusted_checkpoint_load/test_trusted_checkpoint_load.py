import pytest

from tests.support.programs import Program, ends_with, only

PROGRAM = Program("trusted-checkpoint-load", "2.3.3", "pytorch-lightning")

REFUSED = "Weights only load failed"


@pytest.mark.parametrize("version", ["2.0.0", "2.3.3", "2.6.0", "2.6.6"])
def test_checkpoint_in_a_trusted_directory_loads(version):
    stock = PROGRAM.stock(version=version)
    assert not stock.ok and REFUSED in stock.output, stock

    shim = PROGRAM.shim("ways", version)
    assert shim.ok, shim
    assert shim.observations[0] == {"fabric": 3, "data": 3, "loaded": 3, "resumed": 6, "warnings": []}


@pytest.mark.parametrize("version", ["2.0.0", "2.2.5", "2.6.6"])
@pytest.mark.parametrize(("word", "seen_then"), [("best", 1), ("last", 4)])
def test_file_of_another_user_loads_only_from_a_trusted_directory(version, word, seen_then):
    trusted, untrusted = PROGRAM.shim(word, version), PROGRAM.shim(f"{word}-untrusted", version)
    assert trusted.ok, trusted
    assert trusted.observations == [{word: seen_then, "warnings": []}]
    assert not untrusted.ok and REFUSED in untrusted.output, untrusted


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("case", ["untrusted", "link-out", "neighbour"])
def test_other_files_are_refused_as_on_stock(version, case):
    result = PROGRAM.shim(case, version)
    assert not result.ok and REFUSED in result.output, (case, result)
    assert "loaded" not in result.observations[0]
    (hint,) = result.observations[0]["warnings"]
    assert "trust_checkpoints(directory)" in hint and "add_safe_globals" in hint and "weights_only" not in hint
    assert "__main__.Options" in hint and ".ckpt" in hint


def test_explicit_weights_only_is_respected():
    result = PROGRAM.shim("asked", "2.6.6")
    assert not result.ok and REFUSED in result.output and result.observations[0]["warnings"] == [], result


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
def test_hint_for_a_non_file_names_no_directory(version):
    stock, shim = PROGRAM.both("memory", version)
    (hint,) = shim.observations[0]["warnings"]
    assert "__main__.Options" in hint and "add_safe_globals" in hint and "directory" not in hint
    assert shim.observations[0]["error"] == stock.observations[0]["error"]
    assert shim.observations[0]["position"] == stock.observations[0]["position"]


def test_names_from_the_file_are_printed_without_control_characters():
    (hint,) = PROGRAM.shim("names", "2.6.6").observations[0]["warnings"]
    assert "\x1b" not in hint and "Opt\\x1b[2Jions" in hint


def test_link_to_a_trusted_file_loads():
    result = PROGRAM.shim("link-in", distribution="lightning")
    assert result.ok, result


@pytest.mark.parametrize(("version", "case"), [("2.3.3", "opened"), ("2.6.6", "opened"), ("2.6.6", "forced")])
def test_file_that_others_can_write_is_refused_at_load_time(version, case):
    result = PROGRAM.shim(case, version)
    assert not result.ok and REFUSED in result.output, (case, result)
    (hint,) = result.observations[0]["warnings"]
    assert ("chmod o-w" in hint) is (case == "opened") and "Options" not in result.observations[0], hint


PROOFS = PROGRAM.proofs(
    ends_with(REFUSED),
    recommended="",
    observed=only("loaded", "resumed"),
    recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    since="1.9.0",
)
