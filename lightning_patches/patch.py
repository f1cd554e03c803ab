"""What a patch is: records only. Nothing here knows how a patch is applied, toggled or shown.

The records that start-up needs are named tuples: a dataclass takes a millisecond to define, ten times as long.
"""

from __future__ import annotations

from typing import Any, Callable, Literal, NamedTuple, Optional

Group = Literal["correctness", "crash", "hang", "security", "compat", "performance"]
GROUPS: tuple[Group, ...] = ("correctness", "crash", "hang", "security", "compat", "performance")

Builder = Callable[[Any, str], Callable[..., Any]]
"""``build(original, namespace)`` returns the replacement, a plain function.

``original`` is the function that stands in the slot (or the layer below, where two patches share a target), and
``None`` for a target that the patch adds. ``namespace`` is the root package, ``"lightning"`` or
``"pytorch_lightning"``; :func:`lightning_patches.distributions.module_name` turns a part of it into a module name.
"""


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
    """

    location: str
    build: Builder
    adds: bool = False
    since: str = ""
    before: str = ""
    early: bool = False

    @property
    def module(self) -> str:
        """``"pytorch.tuner.lr_finder"``"""
        return self.location.partition(":")[0]

    @property
    def attribute(self) -> str:
        """``"_lr_find"`` or ``"_FabricModule.__init__"``"""
        return self.location.partition(":")[2]


class Upstream(NamedTuple):
    """Where the bug and its fix stand in Lightning's own history.

    Args:
        issues: issue numbers of the report.
        pull_requests: numbers of the official fix; empty where there is none.
        commit: commit of the official fix on master.
        fixed_in: first release whose code carries the fix, ``None`` for never fixed.
        tests: the official tests that came with the fix, as ``path::name``.
    """

    issues: tuple[int, ...] = ()
    pull_requests: tuple[int, ...] = ()
    commit: str = ""
    fixed_in: Optional[str] = None
    tests: tuple[str, ...] = ()


class Impact(NamedTuple):
    """What the user suffers.

    Args:
        summary: one sentence, in the user's words.
        symptoms: the error messages or visible effects, as people would search for them.
    """

    summary: str
    symptoms: tuple[str, ...] = ()


class Patch(NamedTuple):
    """The backport of one fix.

    Args:
        name: kebab-case, says the subject.
        title: what the patch does, one line.
        group: the kind of harm that it ends.
        affected: version ranges of Lightning whose code has the bug, as specifiers (``">=2.1.0,<2.4.0"``), any of
            which may match.
        targets: what is swapped, all or nothing.
        upstream: issue, official fix, first fixed release.
        impact: what the user sees.
        witnesses: further locations that tell a fixed source from an affected one, where the official fix changed
            other functions than our targets.
        default: part of the default set; otherwise opt-in.
        further_than_upstream: where and why the patch does more than the official fix; "" where it does the same.
        equivalent_to: for a bug that upstream never fixed, the usage its maintainers recommend.
        probe: for a bug whose cause is not in Lightning: tells whether it is there, by trying it out, and remembers.
            The replacement asks at its first use, and steps aside where it is not; the verdict on a patch that is in
            place asks as well. It may import torch. For tests see ``tests/support/old_torch``.
        note: anything a user should know before relying on it.
        warns_of: for a patch that mends nothing, and only says when a bug without a patch strikes: the bug's name in
            :mod:`lightning_patches.known_bugs`. It has no diff, and no place in the equivalence.
    """

    name: str
    title: str
    group: Group
    affected: tuple[str, ...]
    targets: tuple[Target, ...]
    upstream: Upstream
    impact: Impact
    witnesses: tuple[str, ...] = ()
    default: bool = True
    further_than_upstream: str = ""
    equivalent_to: str = ""
    probe: Optional[Callable[[], bool]] = None
    note: str = ""
    warns_of: str = ""

    @property
    def fixed_in(self) -> Optional[str]:
        return self.upstream.fixed_in

    @property
    def locations(self) -> tuple[str, ...]:
        """Every location whose source decides whether the patch may be applied."""
        return tuple(dict.fromkeys([*(t.location for t in self.targets), *self.witnesses]))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Issue and pull request numbers that select this patch in the toggle."""
        return (*self.upstream.issues, *self.upstream.pull_requests)
