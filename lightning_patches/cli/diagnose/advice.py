"""The advice on a match: what the user should do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from lightning_patches.cli import autostart
from lightning_patches.cli.diagnose import calls, rules
from lightning_patches.cli.diagnose.facts import Start
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import Match
from lightning_patches.engine import gate
from lightning_patches.known.unpatched import WITH_PKG_RESOURCES, Unpatched
from lightning_patches.patch import Patch
from lightning_patches.patches.removed import Removed

WORKAROUNDS = {
    "rich-progress-bar": '`pip install "rich<14.1"`',
    "import-without-pkg-resources": f'`pip install "{WITH_PKG_RESOURCES}"`',
    "torchmetrics-compare-version": '`pip install "torchmetrics<0.11"`',
    "mpi-without-library": "`pip uninstall mpi4py`",
    "scheduler-types": '`pip install "torch<2"`',
    "scheduler-choices": '`pip install "torch<2"`',
    "plateau-waits-for-validation": '`"strict": False` in the scheduler\'s configuration',
    "fused-optimizer-clipping": "an optimizer without `fused=True`",
    "interval-without-validation": "Trainer without `val_check_interval`",
}
"""Patch -> advice that needs neither the patch nor another Lightning."""

_ON_PATCHES: tuple[rules.Rule[str], ...] = (
    ({"older"}, set(), "Move to Lightning 2.x. {older} was not checked for this bug"),
    ({"refused"}, set(), "`lightning-patches status {name}` shows why the patch is not applied here{leave}"),
    ({"words"}, set(), "`lightning-patches show {name}` shows its symptoms and what to do"),
    ({"warns"}, set(), "{run}, which warns when this happens, but does not fix it{leave}"),
    ({"opt-in"}, {"pending", "patched"}, "{opt_in}{leave}"),
    ({"disabled"}, {"opt-in"}, "Select the patch again: LIGHTNING_PATCHES leaves it out{leave}"),
    (
        {"needed", "own-checkpoint-load"},
        {"patched"},
        "{run}; this fixes the error if the same run wrote the checkpoint. For other checkpoints, put {needed}{leave}",
    ),
    ({"needed"}, set(), "Put {needed}{leave}"),
    (
        {"patched"},
        set(),
        "`lightning-patches status {name}`, run in its environment, shows why the patch did not help although it was "
        "on{leave}",
    ),
    (set(), set(), "{run}{leave}"),
)
_SCRIPT = "SCRIPT"
"""Placeholder for an unknown program."""
_WATCHED = "`LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches run {}`"
_NOTHING = "nothing: "
"""Beginning of a removed name's replacement if there is none."""


def write(match: Match) -> str:
    """Return the advice on a match, a sentence without its full stop."""
    record = match.record
    if match.ruled_out:
        return _on_ruled_out(match)
    if isinstance(record, Removed):
        has_none = record.instead.startswith(_NOTHING)
        return f"Remove it: {record.instead[len(_NOTHING) :]}" if has_none else f"Use instead: {record.instead}"
    if isinstance(record, Patch):
        return _on_patch(match, record)
    return _on_unpatched(match, record)


def _on_ruled_out(match: Match) -> str:
    if match.excluded:
        return f"{match.excluded[0].upper()}{match.excluded[1:]}, so the cause is another one"
    record, where = match.record, ", ".join(one.release for one in match.verdicts)
    if isinstance(record, Removed):
        return f"{where} has it; from {record.gone} on: {record.instead}"
    return f"{where} does not have this bug, so the cause is another one, unless another release wrote the log"


def hang_watch(logs: Sequence[Log]) -> str:
    """Return the advice to use the hang watch."""
    program = next((log.facts.start.program for log in logs if log.facts.start.program), _SCRIPT)
    return f"{_WATCHED.format(program)} reports after 300 seconds which rank is missing, and where it is"


def _on_unpatched(match: Match, record: Unpatched) -> str:
    if match.needed:
        return f"If the file is your own: put {match.needed}. In your own torch.load calls, pass `weights_only=False`"
    do = record.do.replace("{hang watch}", hang_watch([match.log]))
    return do or f"{record.advice}: there is no patch ({record.why_not})"


def _on_patch(match: Match, record: Patch) -> str:
    kinds = {one.verdict for one in match.verdicts}
    signs = {
        *kinds,
        match.ground,
        record.name,
        "older" * bool(older(match)),
        "refused" * bool(kinds & set(gate.REFUSED)),
        "warns" * record.warns,
        "opt-in" * (not record.default),
        "needed" * bool(match.needed),
        "patched" * match.is_patched,
    }
    others = [WORKAROUNDS[record.name]] if record.name in WORKAROUNDS else []
    others += [f"upgrade to Lightning {record.fixed_in}"] if record.fixed_in else []
    text = rules.first(_ON_PATCHES, signs) or ""
    return text.format(
        name=record.name,
        older=older(match),
        needed=match.needed,
        run=_enable("1", match.log.facts.start),
        opt_in=_enable(f"default,{record.name}", match.log.facts.start),
        leave=f", or {', or '.join(others)}" if others else "; no release has the fix yet",
    )


def older(match: Match) -> str:
    """Return the relevant release if it was not checked for the bug, or ""."""
    is_older = bool(match.verdicts) and all(one.verdict == "not-known" for one in match.verdicts)
    return match.verdicts[0].release if is_older else ""


def _enable(spec: str, begun: Start) -> str:
    """Return the shortest way to enable the patches in the program."""
    variable = "" if spec == "1" else f"`LIGHTNING_PATCHES={spec}`"
    if autostart.is_enabled():
        return f"`LIGHTNING_PATCHES={spec}`"
    if begun.how == "notebook":
        env = f"`%env LIGHTNING_PATCHES={spec}` and " if variable else ""
        return f"Put {env}`import lightning_patches` into the first cell, above Lightning, and restart the kernel"
    also = f", and set {variable}" if variable else ""
    if begun.how == "torchrun":
        return f"Put `import lightning_patches` at the top of {begun.file or 'the script'}{also}"
    if begun.program:
        option = f"--patches {shlex.quote(spec)} " if variable else ""
        return f"`lightning-patches run {option}{begun.program}`"
    if begun.how == "module":
        return f"Put `lightning-patches run{' --patches ' + spec if variable else ''}` instead of `python`"
    return f"Put {calls.AT_TOP}{also}"
