"""Records of patches. Other modules apply, select and show patches.

The records are named tuples, since a dataclass takes ten times as long to define. This module does not postpone
annotations, because ``typing`` would compile each of them from a string at start-up.
"""

import importlib
from typing import Any, Callable, Literal, NamedTuple, Optional, Tuple

_OLD = (">=1.5.", ">=1.6.", ">=1.7.")
Group = Literal["correctness", "crash", "hang", "security", "compat", "performance"]
Kind = Literal["default", "warning", "opt-in"]
GROUPS: Tuple[Group, ...] = ("correctness", "crash", "hang", "security", "compat", "performance")

RENAMED = {
    "plain-batch-sampler": "loader-sampler-kept",
    "sampler-order-kept": "loader-sampler-kept",
    "warn-mid-epoch-resume": "warn-resumed-run",
    "warn-sampler-shuffled": "warn-sampler-replaced",
}
"""Patches of earlier versions, and the patches that replace them."""

Builder = Callable[[Any, str], Callable[..., Any]]
"""``build(original, namespace)`` returns the replacement, a plain function.

``original`` is the function in the attribute (or the replacement of an earlier patch for the same target). For a method
that the patch adds, it calls the next one in the MRO. For a module's attribute that the patch adds, it is ``None``.
``namespace`` is the root package, ``"lightning"`` or ``"pytorch_lightning"``;
:func:`lightning_patches.engine.distributions.upstream_module` finds its modules.
"""


def no_code(*_: Any) -> Any:
    """Placeholder for code in a record of the index; see :attr:`Patch.whole`."""
    raise NotImplementedError


class Target(NamedTuple):
    """One attribute of one upstream module, written without the namespace.

    Args:
        location: ``"pytorch.tuner.lr_finder:_lr_find"`` or ``"fabric.wrappers:_FabricModule.__init__"``.
        build: returns the replacement for the original.
        adds: True if the affected releases do not have this attribute, and the patch adds it.
        since: first release with this target, if the patch's range starts earlier ("" for all).
        before: first release without this target ("" for none).
        early: True if the patch sets the attribute before the module's code runs, for bugs during the import. Only for
            a target that the patch ``adds``, since the module is still empty. The module may be a package, such as
            ``"pytorch"``.
        stock: paths from a parameter of the replacement to code that must be Lightning's: for example
            ``"trainer.strategy.broadcast"`` for a method or function, ``"self"`` for the class of an object. If the
            program has overridden, wrapped, replaced or registered one of them, the original runs.
        optional: True if Lightning defines the class only if an optional package is installed. Without that package,
            the patch replaces nothing and counts as applied.
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
    """A feature that a patch needs in another package that Lightning imports.

    The engine checks the feature and not the version, since a vendor's build may have a misleading version.

    Args:
        location: ``"torch.distributed:init_process_group"``.
        parameter: a parameter that this function must have ("" for none).
    """

    location: str
    parameter: str = ""

    def __str__(self) -> str:
        name = self.location.replace(":", ".")
        return f"{name}({self.parameter}=...)" if self.parameter else name


class Upstream(NamedTuple):
    """The bug and its fix in Lightning's history.

    Args:
        issues: issue numbers of the report.
        pull_requests: numbers of the official fix; empty if there is none.
        commit: commit of the official fix on master.
        fixed_in: first release with the fix, or ``None``.
        tests: the official tests of the fix, as ``path::name``.
        merged: True if the fix is on master, but in no release yet.
        others: pull requests that were not released in ``fixed_in``: the number, and their release or
            ``"unreleased"``. For a patch with several official fixes.
        proposed: open pull requests that fix the bug.
    """

    issues: Tuple[int, ...] = ()
    pull_requests: Tuple[int, ...] = ()
    commit: str = ""
    fixed_in: Optional[str] = None
    tests: Tuple[str, ...] = ()
    merged: bool = False
    others: Tuple[Tuple[int, str], ...] = ()
    proposed: Tuple[int, ...] = ()


class Consequence(NamedTuple):
    """Errors that a bug causes some lines later.

    Args:
        says: the later errors, as symptoms, with the preceding frames if they matter.
        shows: pattern that another line of the log must match. The texts of its groups must occur in the error.
        why: how that line and the error are related, in words.
        is_sure: True if only this bug makes the line and the error occur together.
        unless: pattern that the error must not match.
    """

    says: Tuple[str, ...]
    shows: str
    why: str
    is_sure: bool = False
    unless: str = ""


class Impact(NamedTuple):
    """The effect of a bug on the user.

    Args:
        summary: one sentence, in the user's words.
        symptoms: error messages or visible effects, as people would search for them.
        error: first line of the error as printed, with ``...`` for varying parts; "" if there is no error.
        frames: parts of frames (path and function). A traceback of the bug has one of them. Needed only for frames
            outside of the targets' files.
        would_tell: what the user should check to be sure that this bug is the cause. It continues the message "To be
            sure, check". Needed if there is no error, or if the symptom has several possible causes.
        consequences: later errors that the bug causes.
    """

    summary: str
    symptoms: Tuple[str, ...] = ()
    error: str = ""
    frames: Tuple[str, ...] = ()
    would_tell: str = ""
    consequences: Tuple[Consequence, ...] = ()


class Effect(NamedTuple):
    """The change that a patch makes to the results of a program that finishes on stock.

    Args:
        kind: kind of the results.
        what: the changed results, and the condition.
    """

    kind: Literal["numbers", "order of data", "files", "how it ends"]
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Patch(NamedTuple):
    """The backport of one fix, or a warning.

    Args:
        group: the kind of bug.
        affected: version ranges of Lightning with the bug, as specifiers (``">=2.1.0,<2.4.0"``); one of them must
            match. Releases 1.5 to 1.7 have a separate range (``">=1.5.0,<1.8.0"``): the patch makes them run with
            current packages, and has no diffs for them.
        targets: the replaced attributes. The engine replaces all of them or none.
        impact: effect of the bug on the user.
        upstream: issue, official fix, first fixed release; empty for a bug without a report.
        changes_results: change in the results of a program that finishes on stock; ``None`` for no change.
        note: facts to know before relying on the patch: limits, the reference if upstream never fixed the bug,
            differences from the official fix, and programs that could rely on the behavior without the patch.
        opt_in: the users who should enable the patch, such as "users who train in salloc", without a full stop; "" for
            a default patch.
        signs: signs that an opt-in patch is needed. A sign is a text of one or more names, and all of them must be
            present: environment variables that are set (in capitals), and names that a script uses. A name that starts
            with ``-`` must be absent.
        added: the first version of this package with the patch.
        only_with: versions of other packages, or of Python. The bug occurs only with these: ``"torch>=2.6"``.
        witnesses: further locations that distinguish fixed from affected source, if the official fix changed other
            functions than our targets.
        needs: features of other packages. Without them the patch is ``not-supported`` and changes nothing.
        probe: for a bug outside of Lightning: a function that returns True if the bug is present, and caches the
            result. The replacement calls it at its first use, and runs the original if the bug is absent. The verdict
            on an applied patch also calls it. It may import torch. For tests see ``tests/support/old_torch``.
        after: names of patches that this one wraps. Patches with a shared target must declare their order, directly or
            indirectly.
        around: names of patches that usually wrap this one. If a fork already has the diff of one of them, this patch
            wraps it instead.
        fixed_by: for a ``warn-...`` patch, the patches that fix the bug. If a fork has one of them, the engine skips
            the warning.
        name: the name of the patch's file, in kebab case. ``scripts/renew`` writes this and the next fields into the
            index (``patches/_index.py``).
        title: first paragraph of its docstring, without a full stop: what the patch does.
        below: the patches that this one wraps, directly (``after``) or indirectly.
        module: for a record of the index, the module that has the :attr:`whole` patch.
    """

    group: Group
    affected: Tuple[str, ...]
    targets: Tuple[Target, ...]
    impact: Impact
    upstream: Upstream = Upstream()
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
    name: str = ""
    title: str = ""
    below: Tuple[str, ...] = ()
    module: str = ""

    @property
    def whole(self) -> "Patch":
        """The patch with its code. A record of the index has only the fields that select a patch and check releases."""
        if not self.module:
            return self
        found: Patch = importlib.import_module(self.module).PATCH
        return found._replace(name=self.name, title=self.title, below=self.below)

    def with_code(self, target: Target) -> Tuple["Patch", Target]:
        """Return the :attr:`whole` patch and its target that corresponds to ``target``."""
        whole = self.whole
        return whole, whole.targets[self.targets.index(target)]

    @property
    def kind(self) -> Kind:
        """The kind of patch.

        A default fix leaves working programs unchanged. A warning (``warn-...``) fixes nothing: it warns when a bug
        that no default fix covers occurs, or a name that 2.0 removed is used. All other fixes are opt-in.
        """
        if self.name.startswith("warn-"):
            return "warning"
        return "opt-in" if self.opt_in else "default"

    @property
    def default(self) -> bool:
        return self.kind != "opt-in"

    @property
    def affected_old(self) -> Tuple[str, ...]:
        """The ranges of 1.5 to 1.7."""
        return tuple(one for one in self.affected if one.startswith(_OLD))

    @property
    def affected_known(self) -> Tuple[str, ...]:
        """The ranges of release 1.8 and later."""
        return tuple(one for one in self.affected if not one.startswith(_OLD))

    @property
    def for_import(self) -> bool:
        """True if Lightning cannot be imported without the patch. A toggle that selects other patches keeps it."""
        is_early = any(target.early for target in self.targets) or ".imports." in self.module
        return is_early and self.default

    @property
    def warns(self) -> bool:
        return self.kind == "warning"

    @property
    def fixed_in(self) -> Optional[str]:
        return self.upstream.fixed_in

    @property
    def is_counted(self) -> bool:
        """True if the patch counts as a fix in our totals.

        Patches that only warn, and patches for bugs that a newer torch does not have, are not counted.
        """
        return not self.warns and self.probe is None

    @property
    def locations(self) -> Tuple[str, ...]:
        """Every location whose source the engine checks before it applies the patch."""
        return tuple(dict.fromkeys([*(t.location for t in self.targets), *self.witnesses]))

    @property
    def numbers(self) -> Tuple[int, ...]:
        """Issue and pull request numbers that select this patch in the toggle."""
        return (*self.upstream.issues, *self.upstream.pull_requests, *self.upstream.proposed)
