"""The grammar of ``LIGHTNING_PATCHES``, rule by rule."""

from __future__ import annotations

import pytest

from lightning_patches.engine.toggle import DEFAULT_WORDS, EXACT, FLAG_WORDS, NOTHING_WORDS, parse
from lightning_patches.errors import LightningPatchesError, ToggleError
from lightning_patches.patch import Effect, Target, Upstream
from lightning_patches.patches import all_patches, find
from tests.unit.fakes import FUNCTION, times_ten, toy

CATALOGUE = (
    toy(name="alpha", group="crash", upstream=Upstream(issues=(100,), pull_requests=(101,))),
    toy(name="beta", group="security", upstream=Upstream(issues=(200,))),
    toy(name="gamma", group="performance", opt_in="users who try", upstream=Upstream(issues=(100,))),
    toy(name="no-delta", group="crash", upstream=Upstream(issues=(400,))),
    toy(name="epsilon", group="security", opt_in="users who try"),
)
DEFAULT = {"alpha", "beta", "no-delta"}
ALL = {*DEFAULT, "gamma", "epsilon"}


def names(spec: str | None) -> set[str]:
    return set(parse(spec, CATALOGUE).names)


@pytest.mark.parametrize("spec", [None, "", "   ", *sorted(DEFAULT_WORDS), "ON", " True "])
def test_empty_and_default_words_select_the_default_set(spec: str | None) -> None:
    assert names(spec) == DEFAULT


@pytest.mark.parametrize("spec", [*sorted(NOTHING_WORDS), "OFF", "False"])
def test_off_words_select_nothing(spec: str) -> None:
    assert names(spec) == set()


def test_same_results_is_the_default_set_without_what_changes_results() -> None:
    changing = (toy(name="zeta", changes_results=Effect("numbers", "all")), toy(name="eta", opt_in="users who try"))
    assert set(parse("same-results", (*CATALOGUE, *changing)).names) == DEFAULT
    assert set(parse("same-results,zeta,-alpha", (*CATALOGUE, *changing)).names) == DEFAULT - {"alpha"} | {"zeta"}


@pytest.mark.parametrize("word", EXACT)
def test_exact_word_selects_its_patches_of_the_catalogue_with_the_opt_in_ones(word: str) -> None:
    assert set(parse(word, all_patches()).names) >= EXACT[word]
    extended, default = (set(parse(spec, all_patches()).names) for spec in (f"default,{word}", "default"))
    assert extended - default == {name for name in EXACT[word] if not find(name)[0].default}
    assert not EXACT[word] & set(parse(f"default,-{word}", all_patches()).names)


def test_exact_selects_the_patches_of_all_exact_words() -> None:
    assert EXACT["exact"] == {name for word in EXACT if word != "exact" for name in EXACT[word]} > {"mid-epoch-resume"}


def test_selection_by_name_keeps_import_patches() -> None:
    catalogue = (*CATALOGUE, toy(Target(FUNCTION, times_ten, early=True), name="importable", group="compat"))
    assert set(parse("100", catalogue).names) == {"alpha", "gamma", "importable"}
    assert set(parse("security", catalogue).names) == {"beta", "epsilon", "importable"}
    for spec in ("100,-importable", "100,no-compat", "off,100"):  # unless another item changes that
        assert set(parse(spec, catalogue).names) == {"alpha", "gamma"}


def test_all_is_the_default_set_and_the_opt_in_patches() -> None:
    assert names("all") == ALL


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("alpha", {"alpha"}),
        ("ALPHA", {"alpha"}),
        ("gamma", {"gamma"}),  # named, it need not be in the default set
        ("200", {"beta"}),
        ("#200", {"beta"}),
        ("100", {"alpha", "gamma"}),  # one issue, two patches
        ("101", {"alpha"}),  # a pull request
        ("https://github.com/Lightning-AI/pytorch-lightning/issues/200", {"beta"}),
        ("https://github.com/Lightning-AI/pytorch-lightning/pull/101/files", {"alpha"}),
        ("default,-https://github.com/Lightning-AI/lightning/issues/100#issuecomment-7", {"beta", "no-delta"}),
        ("alpha,beta", {"alpha", "beta"}),
        ("alpha beta", {"alpha", "beta"}),
        (" alpha ,, beta , ", {"alpha", "beta"}),
        ("default,gamma,epsilon", ALL),
        # A group selects its default patches
        ("crash", {"alpha", "no-delta"}),
        ("security,crash", {*DEFAULT, "epsilon"}),  # the whole group
        ("default,security", {*DEFAULT, "epsilon"}),
        ("performance", set()),  # opt-in patches are not selected by their group,
        ("all,-performance,-security,beta", DEFAULT),  # but excluded by it
        ("hang", set()),
        ("performance,gamma", {"gamma"}),
        # An exclusion removes patches
        ("-alpha", DEFAULT - {"alpha"}),  # begins with an exclusion: from the default set
        ("no-alpha", DEFAULT - {"alpha"}),
        ("-200", DEFAULT - {"beta"}),
        ("-#200", DEFAULT - {"beta"}),
        ("-crash", {"beta"}),
        ("no-crash", {"beta"}),
        ("strict,-alpha", DEFAULT - {"alpha"}),
        ("all,-alpha", ALL - {"alpha"}),
        ("alpha,beta,-beta", {"alpha"}),
        ("beta,-alpha", {"beta"}),  # not selected before
        ("off,-alpha", set()),
        ("no-delta", {"no-delta"}),  # a patch's own name comes before the prefix
        ("no-no-delta", DEFAULT - {"no-delta"}),
        ("-no-delta", DEFAULT - {"no-delta"}),
        # Later items win
        ("alpha,-alpha", set()),
        ("-alpha,alpha", DEFAULT),
        ("alpha,off", set()),
        ("off,alpha", {"alpha"}),
        ("all,default", DEFAULT),
        ("gamma,default", DEFAULT),
        ("-crash,alpha", {"alpha", "beta"}),
    ],
)
def test_items_select_patches(spec: str, expected: set[str]) -> None:
    assert names(spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected", "flags"),
    [
        ("1", DEFAULT, (False, False)),
        ("strict", DEFAULT, (True, False)),
        ("quiet strict", DEFAULT, (True, True)),
        ("alpha,quiet", {"alpha"}, (False, True)),
        ("STRICT,quiet,off", set(), (True, True)),
    ],
)
def test_flags_are_kept_and_select_nothing(spec: str, expected: set[str], flags: tuple[bool, bool]) -> None:
    selection = parse(spec, CATALOGUE)
    assert (set(selection.names), (selection.strict, selection.quiet)) == (expected, flags)


@pytest.mark.parametrize(
    ("spec", "closest"),
    [
        ("alpa", "'alpha'"),
        ("-alpa", "'alpha'"),
        ("defualt", "'default'"),
        ("securty", "'security'"),
        ("strct", "'strict'"),
        ("201", "'200'"),
        ("delta", "'no-delta'"),
        ("1,alhpa", "'alpha'"),
    ],
)
def test_unknown_item_names_the_closest_ones(spec: str, closest: str) -> None:
    with pytest.raises(ToggleError) as raised:
        parse(spec, CATALOGUE)
    text = str(raised.value)
    assert repr(spec.split(",")[-1]) in text
    assert "Did you mean" in text
    assert closest in text
    assert "lightning-patches list" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "spec", ["zzzzzzzz", "#", "-", "no-", "#99999", "-all", "²", "9" * 5000, "alpha;beta"], ids=lambda spec: spec[:10]
)
def test_unknown_item_is_an_error(spec: str) -> None:
    with pytest.raises(ToggleError, match="LIGHTNING_PATCHES: there is no patch, group or issue called"):
        parse(spec, CATALOGUE)


def test_toggle_error_is_a_value_error() -> None:
    assert issubclass(ToggleError, ValueError)
    assert issubclass(ToggleError, LightningPatchesError)


def test_toggle_words_do_not_overlap() -> None:
    assert not DEFAULT_WORDS & NOTHING_WORDS
    assert not (DEFAULT_WORDS | NOTHING_WORDS) & FLAG_WORDS
