"""Bugs of Lightning 2.x that are known and that no patch mends at run time: records only, as in ``patches/``.

``lightning-patches audit`` names them beside the patches, with the release to move to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from lightning_patches.patch import Group


@dataclass(frozen=True)
class KnownBug:
    """One bug without a patch.

    Args:
        name: kebab-case, says the subject; no patch has the same.
        title: the bug in one line.
        group: the kind of harm.
        affected: version ranges whose code has it, as specifiers, any of which may match.
        harm: what the user suffers, one or two sentences.
        why_not: why it is not patched.
        fixed_in: first release whose code carries the fix, ``None`` for none.
        move_to: the release to move to, which may be another one where ``fixed_in`` has a fault of its own.
        issues: issue numbers of the report.
        pull_requests: numbers of the official fix.
        advisories: identifiers of security advisories.
        distributions: those that have it; empty for all that ship Lightning's Trainer and Fabric.
        symptoms: error messages or visible effects, as people would search for them.
    """

    name: str
    title: str
    group: Group
    affected: tuple[str, ...]
    harm: str
    why_not: str
    fixed_in: Optional[str]
    move_to: str
    issues: tuple[int, ...] = ()
    pull_requests: tuple[int, ...] = ()
    advisories: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()


MID_EPOCH_RESUME = KnownBug(
    name="mid-epoch-resume",
    title="A training that is resumed in the middle of an epoch takes one step too many",
    group="correctness",
    affected=(">=2.0.0,<2.5.0",),
    harm="Resumed from a checkpoint that was saved at the end of a batch, as ModelCheckpoint does it with "
    "every_n_train_steps or train_time_interval, the loops count that batch twice: the run takes one optimizer step "
    "more than the same run without a break, and its counters are off by one.",
    why_not="the official fix is a new state machine in five files, which also changes what checkpoints hold",
    fixed_in="2.5.0",
    # 2.5.0 and 2.5.0.post0 cannot resume with a validation stream that has no length (PR 20624).
    move_to="2.5.1",
    pull_requests=(20379,),
    symptoms=("global_step is off by one after resuming from a checkpoint in the middle of an epoch",),
)

KNOWN_BUGS = (
    KnownBug(
        name="compromised-release",
        title="The release on PyPI was not made by Lightning's authors",
        group="security",
        affected=("==2.6.2", "==2.6.3"),
        harm="The package runs hostile code when it is imported, and sends away what it finds of passwords and keys.",
        why_not="a release like that must not be imported at all: uninstall it, and treat every secret that the "
        "machine could read as known to others",
        fixed_in="2.6.4",
        move_to="2.6.4",
        advisories=("GHSA-w37p-236h-pfx3",),
    ),
    MID_EPOCH_RESUME,
    KnownBug(
        name="fsdp-weights-reset",
        title="Fabric.setup gathers FSDP parameters, and may reset them",
        group="correctness",
        affected=(">=2.1.3,<2.2.2",),
        harm="Under FSDP, Fabric.setup walks over the wrapped model with Module.apply, for which FSDP gathers and "
        "shards all parameters again: slow, and weights can be lost.",
        why_not="no machine of several GPUs has proven a patch for it",
        fixed_in="2.2.2",
        move_to="2.2.2",
        pull_requests=(19755,),
    ),
    KnownBug(
        name="fsdp-metrics-device",
        title="FSDP leaves torchmetrics in the model on the CPU",
        group="crash",
        affected=(">=2.0.0,<2.1.2",),
        harm="A model with torchmetrics inside fails under FSDP at the first update of a metric.",
        why_not="no machine of several GPUs has proven a patch for it",
        fixed_in="2.1.2",
        move_to="2.1.2",
        pull_requests=(18954,),
    ),
    KnownBug(
        name="lightning-app",
        title="The App framework in the package has published vulnerabilities",
        group="security",
        affected=(">=2.0.0,<2.3.3",),
        harm="A LightningApp that can be reached over the network lets others write files and run code. Training with "
        "Trainer or Fabric does not use it.",
        why_not="it is not in Trainer or Fabric, and 2.3.3 took the App out",
        fixed_in="2.3.3",
        move_to="2.3.3",
        advisories=("CVE-2024-5452", "CVE-2024-5980"),
        distributions=("lightning",),
    ),
)
