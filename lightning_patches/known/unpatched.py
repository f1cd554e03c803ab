"""Bugs without a patch, features that Lightning doesn't have, and errors with a cause outside of Lightning.

``audit`` counts the bugs in :data:`UNPATCHED`. ``diagnose`` and ``show`` give advice on these and on the records of
:mod:`lightning_patches.known.frequent`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Optional, Union

from lightning_patches.patch import Group, Impact, Upstream


class Unpatched(NamedTuple):
    """A bug without a patch, a missing feature, or an error with a cause outside of Lightning.

    Args:
        name: kebab-case, unique among all records and patches.
        title: the bug, the error or the feature, in one line.
        group: for a bug, the kind of bug. ``"feature"`` for a feature that no release has. ``"environment"`` for a
            frequent error that is caused by other packages, the machine or the program, ``"event"`` for something that
            a log states; see :mod:`lightning_patches.known.frequent`.
        upstream: issue, official fix, first fixed release.
        impact: effect on the user.
        do: advice, a sentence without its full stop; "" for ``Move to Lightning {move_to}``.
        affected: affected versions, as specifiers; one of them must match. Empty for all versions.
        move_to: for a bug, the first release that is safe to move to; "" if no release has a fix. It may be later than
            ``upstream.fixed_in`` if that release has another bug.
        why_not: for a bug, why there is no patch.
        advisories: identifiers of security advisories.
        distributions: the affected distributions; empty for all that ship Lightning's Trainer and Fabric.
        is_shared: True if other errors have the same message, so that only a traceback through ``impact.frames`` proves
            this one.
        proofs: those symptoms that prove the record, although ``impact.would_tell`` asks for more evidence.
        behind: bugs with the same symptom that are the better answer, unless the log or the release excludes them.
        only_with: versions of other packages. The bug occurs only with these, as in
            :class:`~lightning_patches.patch.Patch`.
        machine: the machine without which the bug does not occur. The totals and the exit status of ``audit`` leave out
            such a bug.
    """

    name: str
    title: str
    group: Union[Group, Literal["feature", "environment", "event"]]
    upstream: Upstream
    impact: Impact
    do: str = ""
    affected: tuple[str, ...] = ()
    move_to: str = ""
    why_not: str = ""
    advisories: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    is_shared: bool = False
    proofs: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    machine: str = ""

    @property
    def fixed_in(self) -> Optional[str]:
        return self.upstream.fixed_in

    @property
    def numbers(self) -> tuple[int, ...]:
        """Issue and pull request numbers."""
        return (*self.upstream.issues, *self.upstream.pull_requests)

    @property
    def is_bug(self) -> bool:
        return self.group not in ("feature", "environment", "event")

    @property
    def advice(self) -> str:
        return self.do or f"Move to Lightning {self.move_to}"


ADVISORY = "GHSA-w37p-236h-pfx3"
ADVICE = "do not import it: uninstall it, install 2.6.1 or 2.6.4, and replace every secret that this machine could read"
"""Advice about the two releases that were compromised on PyPI."""

WITH_PKG_RESOURCES = "setuptools<82"
"""Releases of setuptools that have ``pkg_resources``; 81.0.0 is the last one."""

_SEVERAL = "several devices"

UNPATCHED = (
    Unpatched(
        name="compromised-release",
        title="The release on PyPI was not made by Lightning's authors",
        group="security",
        affected=("==2.6.2", "==2.6.3"),
        upstream=Upstream(fixed_in="2.6.4"),
        impact=Impact(
            "The package runs hostile code when it is imported. The code sends passwords and keys to the attacker."
        ),
        why_not=ADVICE,
        move_to="2.6.4",
        advisories=(ADVISORY,),
    ),
    Unpatched(
        name="fsdp-weights-reset",
        title="Fabric.setup gathers FSDP parameters, and may reset them",
        group="correctness",
        affected=(">=2.1.3,<2.2.2",),
        upstream=Upstream(pull_requests=(19755,), fixed_in="2.2.2"),
        impact=Impact(
            "Under FSDP, Fabric.setup calls Module.apply on the wrapped model, for which FSDP gathers and shards all "
            "parameters again. That is slow, and weights can be lost."
        ),
        why_not="a patch needs a test on several GPUs, which was not possible yet",
        move_to="2.2.2",
    ),
    Unpatched(
        name="lightning-app",
        title="The App framework in the package has published vulnerabilities",
        group="security",
        affected=(">=2.0.0,<2.3.3",),
        upstream=Upstream(fixed_in="2.3.3"),
        impact=Impact(
            "If a LightningApp can be reached over the network, others can write files and run code. Training with "
            "Trainer or Fabric does not use it."
        ),
        why_not="it is not in Trainer or Fabric, and 2.3.3 removed the App framework",
        move_to="2.3.3",
        advisories=("CVE-2024-5452", "CVE-2024-5980"),
        distributions=("lightning",),
    ),
    Unpatched(
        name="app-beside-lightning-cloud",
        title="The package lightning below 2.0.8 cannot be imported with lightning-cloud 0.6",
        group="crash",
        affected=(">=1.8.4,<2.0.8",),
        upstream=Upstream(fixed_in="2.0.8"),
        impact=Impact(
            "`import lightning` imports the App framework, which imports a name that lightning-cloud 0.6.0 no longer "
            "has. pip installs the newest lightning-cloud, since these releases set no upper bound.",
            ("cannot import name 'AppinstancesIdBody' from 'lightning_cloud.openapi'",),
            error="ImportError: cannot import name 'AppinstancesIdBody' from 'lightning_cloud.openapi' (...)",
            frames=("/lightning/app/",),
        ),
        do='Run `pip install "lightning-cloud<0.6"`, or install pytorch-lightning in the same version and import '
        "pytorch_lightning, which has no App framework, or move to Lightning 2.0.8",
        why_not="it is in the App framework, which the patches do not change, and an older lightning-cloud avoids it",
        move_to="2.0.8",
        distributions=("lightning",),
        only_with=("lightning-cloud>=0.6",),
    ),
    Unpatched(
        name="command-line-of-1-5",
        title="LightningCLI of 1.5 cannot be imported with current jsonargparse",
        group="compat",
        affected=(">=1.5.0,<1.6.0",),
        upstream=Upstream(fixed_in="1.6.0"),
        impact=Impact(
            "pytorch_lightning.utilities.cli imports a private class that jsonargparse no longer has. The rest of "
            "1.5 works. Programs with a command line work on 1.6.5.",
            ("cannot import name '_ActionSubCommands' from 'jsonargparse.actions'",),
            error="ImportError: cannot import name '_ActionSubCommands' from 'jsonargparse.actions'",
            frames=("/pytorch/utilities/cli.py",),
        ),
        why_not="the whole command line of 1.5 depends on the internals of old jsonargparse",
        move_to="1.6.5",
        distributions=("pytorch-lightning",),
    ),
    Unpatched(
        name="metadata-of-1x",
        title="pip 24.1 and later refuses to install this release",
        group="compat",
        affected=(">=1.5.4,<=1.5.10", ">=1.6.0,<=1.6.5", ">=1.7.0,<1.8.4"),
        upstream=Upstream(fixed_in="1.8.4"),
        impact=Impact(
            "A requirement in the wheel's metadata, torch>=1.9.*, is not a valid version specifier. pip 24.1 and later "
            "refuse the release, even as a local file. pip<24.1 installs it.",
            (
                "pytorch-lightning since it has invalid metadata",
                "Requested pytorch-lightning==... has invalid metadata",
            ),
        ),
        why_not='the failure is in pip, before any code of Lightning runs: use pip install "pip<24.1" first, or '
        "take 1.5.10.post0 or 1.6.5.post0",
        move_to="1.8.4",
        distributions=("pytorch-lightning",),
    ),
    Unpatched(
        name="lbfgs-on-several-ranks",
        title="LBFGS with a line search hangs on several ranks",
        group="hang",
        affected=(">=1.8.0,<=2.6.1", ">=2.6.4,<=2.6.6"),
        upstream=Upstream(),
        impact=Impact(
            "Under DDP, the line search of each rank runs the closure another number of times. The ranks then wait for "
            "each other in different collectives.",
            (
                "LBFGS with line_search_fn strong_wolfe hangs under DDP",
                "training with LBFGS on several GPUs gets stuck in the first step",
            ),
        ),
        do="Use LBFGS without `line_search_fn`, or on one device",
        why_not="only the program can make its loss the same on all ranks",
        machine=_SEVERAL,
    ),
    Unpatched(
        name="stop-on-one-rank",
        title="The other ranks hang if only one rank stops",
        group="hang",
        affected=(">=1.8.0,<=2.6.1", ">=2.6.4,<=2.6.6"),
        upstream=Upstream(),
        impact=Impact(
            "If only one rank sets trainer.should_stop, or returns -1 from on_train_batch_start, it leaves the epoch. "
            "The other ranks then wait for it in the next collective.",
            (
                "trainer.should_stop = True on one rank hangs the other ranks",
                "returning -1 from on_train_batch_start hangs under DDP",
            ),
        ),
        do="Decide on all ranks together: `stop = trainer.strategy.reduce_boolean_decision(stop, all=False)`",
        why_not="a decision of all ranks needs communication in each step",
        machine=_SEVERAL,
    ),
    Unpatched(
        name="uneven-loaders",
        title="Ranks whose data loaders have different lengths hang",
        group="hang",
        affected=(">=1.8.0,<=2.6.1", ">=2.6.4,<=2.6.6"),
        upstream=Upstream(),
        impact=Impact(
            "If the data loader of one rank ends before those of the others, such as an IterableDataset that each rank "
            "divides, the other ranks wait for it in the next collective.",
            (
                "training hangs at the end of the epoch with an IterableDataset under DDP",
                "ranks have a different number of batches and hang at the end of the epoch",
            ),
        ),
        do="Give all ranks the same number of batches, such as with `limit_train_batches`",
        why_not="only the program knows what the rank without data should do",
        machine=_SEVERAL,
    ),
    Unpatched(
        name="fabric-seed-on-each-rank",
        title="With Fabric, ranks with different seeds divide different shuffled orders",
        group="correctness",
        affected=(">=1.9.0,<=2.6.1", ">=2.6.4,<=2.6.6"),
        upstream=Upstream(),
        impact=Impact(
            "With fabric.seed_everything(seed + rank), each rank takes its share of another shuffled order. In each "
            "epoch, some items are used twice and others not at all.",
            (
                "items are missing from an epoch with Fabric and a different seed on each rank",
                "fabric.seed_everything(seed + fabric.global_rank) gives overlapping samples",
            ),
        ),
        do="Call `fabric.seed_everything(seed)` with one seed before `setup_dataloaders`, and other seeds after it",
        why_not="a program can set up a data loader on one rank only, where communication would hang",
        machine=_SEVERAL,
    ),
    Unpatched(
        name="lr-monitor-on-mps",
        title="LearningRateMonitor fails on Apple's MPS if the learning rate is a float of NumPy",
        group="crash",
        affected=(">=2.1.0,<=2.6.1", ">=2.6.4,<=2.6.6"),
        upstream=Upstream(issues=(20250,), pull_requests=(21545,)),
        impact=Impact(
            "LearningRateMonitor creates a tensor of the learning rate on the device. NumPy's floats, such as the "
            "result of lr_find, are float64, which MPS does not support.",
            ("Cannot convert a MPS Tensor to float64 dtype",),
            error="TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
            "float64.",
            frames=("callbacks/lr_monitor.py",),
        ),
        do="Pass a Python number to the optimizer and to its scheduler: `lr=float(lr)`",
        why_not="only a machine with Apple's MPS can prove it",
        machine="Apple's MPS",
    ),
    Unpatched(
        name="xla-world-size",
        title="The XLA strategies use functions that torch_xla has removed",
        group="crash",
        affected=(">=1.8.0,<2.5.3",),
        upstream=Upstream(issues=(20852,), pull_requests=(20872,), fixed_in="2.5.3"),
        impact=Impact(
            "On TPUs with a new torch_xla, the Trainer and Fabric fail when they ask for the number of ranks.",
            ("module 'torch_xla.core.xla_model' has no attribute 'xrt_world_size'",),
            error="AttributeError: module 'torch_xla.core.xla_model' has no attribute 'xrt_world_size'",
            frames=("environments/xla.py",),
        ),
        why_not="only a machine with a TPU can prove it",
        move_to="2.5.3",
        machine="a TPU",
    ),
)
