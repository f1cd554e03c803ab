"""What a patch is: records only. Nothing here knows how a patch is applied, toggled or shown.

The records that start-up needs are named tuples: a dataclass takes a millisecond to define, ten times as long. Their
annotations are not put off: ``typing`` would compile each of them as a text.
"""

import importlib
from typing import Any, Callable, FrozenSet, Literal, NamedTuple, Optional, Set, Tuple

Group = Literal["correctness", "crash", "hang", "security", "compat", "performance"]
GROUPS: Tuple[Group, ...] = ("correctness", "crash", "hang", "security", "compat", "performance")

Builder = Callable[[Any, str], Callable[..., Any]]
"""``build(original, namespace)`` returns the replacement, a plain function.

``original`` is the function that stands in the slot (or the layer below, where two patches share a target), and
``None`` for a target that the patch adds. ``namespace`` is the root package, ``"lightning"`` or
``"pytorch_lightning"``; :func:`lightning_patches.engine.distributions.upstream_module` finds a module of it.
"""


def no_code(*_: Any) -> Any:
    """Stands for code in a record of the index; see :attr:`Patch.whole`."""
    raise NotImplementedError


class Target(NamedTuple):
    """One attribute of one upstream module, written without the namespace.

    Args:
        location: ``"pytorch.tuner.lr_finder:_lr_find"`` or ``"fabric.wrappers:_FabricModule.__init__"``.
        build: makes the replacement from the original.
        adds: the affected releases do not have this attribute; the patch brings it.
        since: first release that has this target, where the patch's range begins earlier ("" for all).
        before: first release that no longer has this target ("" for none).
        early: put in place before the module's own code runs, for what happens while it is imported. Only for a target
            that the patch ``adds``: nothing else is there yet. The module may be a package, as ``"pytorch"``.
        stock: what has to be Lightning's own at a call for the patch to act: paths from a parameter of the replacement,
            ``"trainer.strategy.broadcast"`` for a method or function, ``"self"`` for the class of an object. Where the
            program has overridden, wrapped, replaced or registered one of them, the original runs.
        optional: Lightning defines the class only if an optional package is installed. Without it there is nothing to
            replace, and the patch counts as applied.
    """

    location: str
    build: Builder
    adds: bool = False
    since: str = ""
    before: str = ""
    early: bool = False
    stock: Tuple[str, ...] = ()
    optional: bool = False

    @property
    def module(self) -> str:
        """``"pytorch.tuner.lr_finder"``"""
        return self.location.partition(":")[0]

    @property
    def attribute(self) -> str:
        """``"_lr_find"`` or ``"_FabricModule.__init__"``"""
        return self.location.partition(":")[2]


class Need(NamedTuple):
    """Something in a package that Lightning imports, without which a patch cannot do what it says.

    It is looked up itself: no version tells what a vendor's build has.

    Args:
        location: ``"torch.distributed:init_process_group"``.
        parameter: one that this function has to take ("" for none).
    """

    location: str
    parameter: str = ""

    def __str__(self) -> str:
        name = self.location.replace(":", ".")
        return f"{name}({self.parameter}=...)" if self.parameter else name


class Upstream(NamedTuple):
    """Where the bug and its fix stand in Lightning's own history.

    Args:
        issues: issue numbers of the report.
        pull_requests: numbers of the official fix; empty where there is none.
        commit: commit of the official fix on master.
        fixed_in: first release whose code carries the fix, ``None`` for never fixed.
        tests: the official tests that came with the fix, as ``path::name``.
        merged: the fix is on master, and in no release yet.
        others: pull requests that came with another release than ``fixed_in``, or are on master only, where the patch
            carries several official fixes, or a part of one: the number, and the release or ``"unreleased"``.
    """

    issues: Tuple[int, ...] = ()
    pull_requests: Tuple[int, ...] = ()
    commit: str = ""
    fixed_in: Optional[str] = None
    tests: Tuple[str, ...] = ()
    merged: bool = False
    others: Tuple[Tuple[int, str], ...] = ()


class Consequence(NamedTuple):
    """Errors that come of a bug some lines later.

    Args:
        says: the errors, as symptoms, with the frames before the message where these matter.
        shows: what else a line of the log has to show, a pattern. What its groups catch has to be in the error.
        why: that, in words.
        is_sure: nothing else brings the two together.
        unless: what the error does not say then, a pattern.
    """

    says: Tuple[str, ...]
    shows: str
    why: str
    is_sure: bool = False
    unless: str = ""


class Impact(NamedTuple):
    """What the user suffers.

    Args:
        summary: one sentence, in the user's words.
        symptoms: the error messages or visible effects, as people would search for them.
        error: first line of the error in which it ends, as it is printed, with ``...`` for what varies; "" if there is
            none.
        frames: parts of frames (path and function), through one of which a traceback of the bug runs, where these are
            not in the files of the targets.
        would_tell: what would tell whether it is this bug, where a symptom alone does not, or there is no error; a
            sentence's end.
        consequences: other errors that come of it later.
    """

    summary: str
    symptoms: Tuple[str, ...] = ()
    error: str = ""
    frames: Tuple[str, ...] = ()
    would_tell: str = ""
    consequences: Tuple[Consequence, ...] = ()


class Effect(NamedTuple):
    """What a patch changes of the results of a program that ran to its end on stock.

    Args:
        kind: which results.
        what: which of them, and when.
    """

    kind: Literal["numbers", "order of data", "files", "how it ends"]
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Patch(NamedTuple):
    """The backport of one fix.

    What its name tells is not stated again: a ``warn-...`` patch mends nothing, and says when a bug without a patch
    strikes.

    Args:
        name: kebab-case, says the subject.
        title: what the patch does, one line.
        group: the kind of harm that it ends.
        affected: version ranges of Lightning whose code has the bug, as specifiers (``">=2.1.0,<2.4.0"``), any of
            which may match. One of 1.5 to 1.9 stands apart (``">=1.5.0,<2.0.0"``): these run with the patch on current
            packages, and have no diffs.
        targets: what is swapped, all or nothing.
        upstream: issue, official fix, first fixed release.
        impact: what the user sees.
        changes_results: what differs of the results of a program that ran to its end on stock; ``None`` for nothing.
        note: what to know before relying on it: limits, what the patch is equivalent to where upstream never fixed the
            bug, where it goes further than the official fix, who could rely on what the release does without it.
        opt_in: who should switch the patch on, "whoever trains in salloc", without a full stop; "" for one of the
            default set.
        signs: of an opt-in patch, what calls for it. Each is some names, all of which have to be there: environment
            variables that are set (in capitals), and names that a script uses; with ``-`` in front, one that must not
            be there.
        added: the version of this package that has brought the patch.
        only_with: other packages, or Python, with which alone the bug shows: ``"torch>=2.6"``. A project that asks for
            another version does not have it.
        witnesses: further locations that tell a fixed source from an affected one, where the official fix changed
            other functions than our targets.
        needs: what other packages have to provide. Without it the patch is ``not-supported`` and changes nothing.
        probe: for a bug whose cause is not in Lightning: tells whether it is there, by trying it out, and remembers.
            The replacement asks at its first use, and steps aside where it is not; the verdict on a patch that is in
            place asks as well. It may import torch. For tests see ``tests/support/old_torch``.
        after: names of the patches around which this one is put. The order of patches that share a target is declared,
            directly or by way of others.
        around: patches that are put around this one, and around whose code in a fork this one works as well: there
            it comes last.
        fixed_by: of a ``warn-...`` patch, the patches that fix the bug. Where a fork carries one, nothing is left to
            warn of.
        module: of a record of the index (``patches/_index.py``), where in :mod:`lightning_patches.patches` its
            :attr:`whole` is.
    """

    name: str
    title: str
    group: Group
    affected: Tuple[str, ...]
    targets: Tuple[Target, ...]
    upstream: Upstream
    impact: Impact
    changes_results: Optional[Effect] = None
    note: str = ""
    opt_in: str = ""
    signs: Tuple[str, ...] = ()
    added: str = "0.1.0"
    only_with: Tuple[str, ...] = ()
    witnesses: Tuple[str, ...] = ()
    needs: Tuple[Need, ...] = ()
    probe: Optional[Callable[[], bool]] = None
    after: Tuple[str, ...] = ()
    around: Tuple[str, ...] = ()
    fixed_by: Tuple[str, ...] = ()
    module: str = ""

    @property
    def whole(self) -> "Patch":
        """The patch itself: a record of the index has what selects it and what decides on it, and no code."""
        if not self.module:
            return self
        found: Patch = importlib.import_module(f"lightning_patches.patches.{self.module}").PATCH
        return found

    def with_code(self, target: Target) -> Tuple["Patch", Target]:
        """The :attr:`whole` patch, and the one of its targets that this one is a record of."""
        whole = self.whole
        return whole, whole.targets[self.targets.index(target)]

    @property
    def below(self) -> FrozenSet[str]:
        """The patches that this one is put around: those of ``after``, and those that they are put around."""
        index = {patch.name: patch for patch in importlib.import_module("lightning_patches.patches").index()}
        found: Set[str] = set()
        left = list(self.whole.after)
        while left:
            name = left.pop()
            if name in index and name not in found:
                left += index[name].whole.after
            found.add(name)
        return frozenset(found)

    @property
    def default(self) -> bool:
        return not self.opt_in

    @property
    def affected_1x(self) -> Tuple[str, ...]:
        return tuple(one for one in self.affected if one.startswith(">=1."))

    @property
    def affected_2x(self) -> Tuple[str, ...]:
        return tuple(one for one in self.affected if not one.startswith(">=1."))

    @property
    def for_import(self) -> bool:
        """Whether Lightning cannot be imported without the patch, wherever its bug shows: a toggle that selects other
        patches by name keeps it."""
        return any(target.early for target in self.targets) or self.module.startswith("imports.")

    @property
    def warns(self) -> bool:
        """Whether the patch mends nothing: it says when a bug without a patch strikes, or what was removed from 1.x."""
        return self.name.startswith("warn-")

    @property
    def fixed_in(self) -> Optional[str]:
        return self.upstream.fixed_in

    @property
    def is_counted(self) -> bool:
        """Whether the patch counts as a fix, in every figure that we give: it mends a bug, and with any torch.

        Those that only warn are not counted, nor are those for a bug that a newer torch does not have.
        """
        return not self.warns and self.probe is None

    @property
    def locations(self) -> Tuple[str, ...]:
        """Every location whose source decides whether the patch may be applied."""
        return tuple(dict.fromkeys([*(t.location for t in self.targets), *self.witnesses]))

    @property
    def numbers(self) -> Tuple[int, ...]:
        """Issue and pull request numbers that select this patch in the toggle."""
        return (*self.upstream.issues, *self.upstream.pull_requests)
