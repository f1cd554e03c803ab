"""PR 20010: releases below 2.4.0, and from 2.6.0 on, load no objects from checkpoints with torch 2.6 and later."""

import os
import warnings

import pytest

from lightning_patches import LightningPatchesWarning, trust, trust_checkpoints
from tests.equivalence.proof import Proof, ends_with, only
from tests.support.arms import Arm, run
from tests.support.effects import Effect

REFUSED = "Weights only load failed"


def seen(version, case="", **options):
    return run("trusted_checkpoint_load", Arm("pytorch-lightning", version, shim=True), case, **options)


@pytest.mark.parametrize("version", ["2.0.0", "2.3.3", "2.6.0", "2.6.6"])
def test_trusted_directory_loads(version):
    stock = run("trusted_checkpoint_load", Arm("pytorch-lightning", version))
    assert not stock.ok and REFUSED in stock.output, stock

    shim = seen(version, "ways")
    assert shim.ok, shim
    assert shim.observations[0] == {"fabric": 3, "data": 3, "loaded": 3, "resumed": 6, "warnings": []}


@pytest.mark.parametrize("version", ["2.0.0", "2.2.5", "2.6.6"])
@pytest.mark.parametrize(("word", "seen_then"), [("best", 1), ("last", 4)])
def test_a_word_for_a_file_of_others(version, word, seen_then):
    trusted, untrusted = seen(version, word), seen(version, f"{word}-untrusted")
    assert trusted.ok, trusted
    assert trusted.observations == [{word: seen_then, "warnings": []}]
    assert not untrusted.ok and REFUSED in untrusted.output, untrusted


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("case", ["untrusted", "link-out", "neighbour"])
def test_everything_else_is_refused_as_before(version, case):
    result = seen(version, case)
    assert not result.ok and REFUSED in result.output, (case, result)
    assert "loaded" not in result.observations[0]
    (hint,) = result.observations[0]["warnings"]
    assert "trust_checkpoints(directory)" in hint and "add_safe_globals" in hint and "weights_only" not in hint
    assert "__main__.Options" in hint and ".ckpt" in hint


def test_weights_only_is_obeyed():
    result = seen("2.6.6", "asked")
    assert not result.ok and REFUSED in result.output and result.observations[0]["warnings"] == [], result


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
def test_the_hint_on_what_is_no_file_names_no_directory(version):
    stock = run("trusted_checkpoint_load", Arm("pytorch-lightning", version), "memory")
    shim = seen(version, "memory")
    (hint,) = shim.observations[0]["warnings"]
    assert "__main__.Options" in hint and "add_safe_globals" in hint and "directory" not in hint
    assert shim.observations[0]["error"] == stock.observations[0]["error"]
    assert shim.observations[0]["position"] == stock.observations[0]["position"]


def test_a_name_in_the_file_does_not_reach_the_terminal_as_it_is():
    (hint,) = seen("2.6.6", "names").observations[0]["warnings"]
    assert "\x1b" not in hint and "Opt\\x1b[2Jions" in hint


def test_link_to_a_trusted_file_loads():
    result = run("trusted_checkpoint_load", Arm("lightning", "2.3.3", shim=True), "link-in")
    assert result.ok, result


def test_what_can_be_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_trusted_directories", set())
    for wrong in (3, None, os.fsencode(tmp_path), [tmp_path]):
        with pytest.raises(TypeError):
            trust_checkpoints(wrong)
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints(tmp_path / "none")
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints("")  # os.environ.get("CHECKPOINTS", "")
    with pytest.raises(ValueError, match="every file"):
        trust_checkpoints(os.path.abspath(os.sep))
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    trust_checkpoints(tmp_path / "link")
    assert trust.trusted_checkpoint(str(tmp_path / "runs" / "a.ckpt")) == str(tmp_path / "runs" / "a.ckpt")
    assert trust.trusted_checkpoint(tmp_path / "runs" / ".." / "a.ckpt") == ""
    monkeypatch.chdir(tmp_path / "runs")
    for elsewhere in ("https://example.org/a.ckpt", "s3://bucket/a.ckpt", "simplecache::s3://a.ckpt", os.fsencode("a")):
        assert trust.trusted_checkpoint(elsewhere) == ""
    assert trust.trusted_checkpoint("a.ckpt") == str(tmp_path / "runs" / "a.ckpt")


@pytest.mark.parametrize(
    ("mode", "parent", "named"),
    [
        (0o700, 0o700, None),
        (0o755, 0o1777, None),  # as in /tmp
        (0o777, 0o700, "runs"),
        (0o1777, 0o700, "runs"),
        (0o755, 0o777, "above"),
    ],
)
def test_a_directory_that_others_can_write_is_told(tmp_path, monkeypatch, mode, parent, named):
    monkeypatch.setattr(trust, "_trusted_directories", set())
    runs = tmp_path / "above" / "runs"
    runs.mkdir(parents=True)
    runs.chmod(mode)
    runs.parent.chmod(parent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trust_checkpoints(runs)
    told = [str(one.message) for one in caught]
    assert len(told) == (named is not None), told
    assert named is None or f"{named}' , and".replace(" ,", ",") in told[0]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_directory_of_another_user_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_trusted_directories", set())
    os.chown(tmp_path, 12345, 12345)
    with pytest.warns(LightningPatchesWarning, match="only you can write"):
        trust_checkpoints(tmp_path)


PROOFS = (
    Proof(
        "trusted-checkpoint-load",
        ends_with(REFUSED),
        observed=only("loaded", "resumed"),
        recommended="",
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    ),
)
EFFECTS = (
    Effect(
        "where torch refuses to load a checkpoint, says how to trust its directory",
        lines=(r"warning LightningPatchesWarning \S+ holds objects that torch does not load by default",),
    ),
)
