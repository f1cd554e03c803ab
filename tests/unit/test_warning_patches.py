"""Patches that only warn are built by ``observe``, which passes calls on and whose observations cannot fail."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from typing import Any

import pytest

from lightning_patches import LightningPatchesWarning, notices
from lightning_patches.patch import Patch, Target
from lightning_patches.patches import all_patches
from lightning_patches.patches._warning import Notes, observe, stored, warn, warning
from lightning_patches.patches.callbacks import ema_from_epoch

CODE = observe(print).__code__


def original(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def misbuilt(patch: Patch) -> list[Target]:
    """Return the targets whose replacement does not come from ``observe``, or is not called as the original is."""
    return [
        target
        for target in patch.targets
        if target.build(original, "lightning").__code__ is not CODE or target.stock or target.adds
    ]


class Hostile:
    """An object of the program that can't be read."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("patch", [patch for patch in all_patches() if patch.warns], ids=lambda patch: patch.name)
def test_warning_patch_only_observes(patch: Patch) -> None:
    assert misbuilt(patch) == []
    for target in patch.targets:
        replacement, objects = target.build(original, "lightning"), [Hostile(), Hostile()]
        for args, kwargs in ((objects, {}), (objects[:1], {"trainer": objects[1]}), ([], {"what": objects})):
            found = replacement(*args, **kwargs)
            assert len(found[0]) == len(args) and all(map(lambda a, b: a is b, found[0], args)) and found[1] == kwargs


def test_warning_patch_has_the_facts_of_its_fix() -> None:
    patch, fix = (
        warning(fixes=(ema_from_epoch,), when=", at the end", note="Further.", added="0.3.0"),
        ema_from_epoch.PATCH,
    )
    assert (patch.affected, patch.upstream) == (fix.affected, fix.upstream)
    assert patch.impact.summary == fix.impact.summary and patch.fixed_by == patch.after == ("ema-from-epoch",)
    assert patch.note == (
        "This patch fixes nothing: it warns once, at the end. The opt-in patch ema-from-epoch fixes the bug. Further."
    )


def test_observations_get_the_arguments_and_results() -> None:
    seen: list[Any] = []

    def before(*args: Any, **kwargs: Any) -> str:
        seen.append((args, kwargs))
        return "state"

    def after(state: str, result: Any, *args: Any, **kwargs: Any) -> None:
        seen.append((state, result, args, kwargs))

    result = observe(original, before, after)(1, b=2)
    assert result == ((1,), {"b": 2})
    assert seen == [((1,), {"b": 2}), ("state", result, (1,), {"b": 2})]
    observe(original, after=after)(3)
    assert seen[2:] == [(None, ((3,), {}), (3,), {})]


def test_failed_observation_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    called = []

    def fails(*_: Any) -> None:
        raise LookupError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert observe(original, fails, lambda *_: called.append(1))(1) == ((1,), {})
        assert observe(original, after=fails)(1) == ((1,), {})
    assert called == [] and capfd.readouterr() == ("", "")


def test_exception_of_the_original_is_unchanged() -> None:
    called = []
    error = StopIteration(1)

    def raising() -> None:
        raise error

    def fails() -> None:
        raise LookupError

    for before in (None, fails):
        with pytest.raises(StopIteration) as caught:
            observe(raising, before, lambda *_: called.append(1))()
        assert caught.value is error and error.__context__ is None
    assert called == []


def test_warning_that_is_an_error_ends_no_program(monkeypatch, capfd):
    monkeypatch.setattr(notices, "_said", set())
    observed = observe(original, after=lambda *_: warn("key", "Something will differ."))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert observed(1) == observed(1) == ((1,), {})
    assert capfd.readouterr().err == "lightning_patches: Something will differ.\n"


def test_warning_is_at_the_caller_and_occurs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_said", set())
    observed = observe(original, before=lambda *_: warn("key", "Something will differ."))
    with pytest.warns(LightningPatchesWarning) as caught:
        [observed(1) for _ in range(2)]
    assert [one.filename for one in caught] == [__file__]


def test_notes_leave_objects_unchanged_and_free_them() -> None:
    class Peculiar:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise NotImplementedError

    notes, about = Notes(), Peculiar()
    notes.add(about, 1)
    assert vars(about) == {} and notes.find(about) == 1 and notes.find(copy.copy(about), 2) == 2
    assert notes.take(about) == 1 and notes.take(about, 3) == 3
    notes.add(about, 4)
    freed = weakref.ref(about)
    del about
    gc.collect()
    assert freed() is None and not notes


def test_stored_attribute_is_read_without_calling_the_program() -> None:
    class Program:
        def __init__(self) -> None:
            self.own = 1

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        @property
        def computed(self) -> int:
            raise RuntimeError

    assert (stored(Program(), "own"), stored(Program(), "computed"), stored(Program(), "no", 2)) == (1, None, 2)


def test_torch_compile_traces_through_an_observed_function() -> None:
    import torch

    def double(value: Any) -> Any:
        return value * 2

    observed = observe(double, lambda value: value.ndim, lambda state, result, value: None)
    compiled = torch.compile(lambda value: observed(value) + 1, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
