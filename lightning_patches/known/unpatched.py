"""Bugs without a patch, features that Lightning doesn't have, and errors with a cause outside of Lightning.

``audit`` counts the bugs in :data:`UNPATCHED`. ``diagnose`` and ``show`` give advice on these and on the records in
:data:`UNCOUNTED`.
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
            frequent error that is caused by other packages, the machine or the program.
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
        only_with: versions of other packages. The bug occurs only with these, as in
            :class:`~lightning_patches.patch.Patch`.
    """

    name: str
    title: str
    group: Union[Group, Literal["feature", "environment"]]
    upstream: Upstream
    impact: Impact
    do: str = ""
    affected: tuple[str, ...] = ()
    move_to: str = ""
    why_not: str = ""
    advisories: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    is_shared: bool = False
    only_with: tuple[str, ...] = ()

    @property
    def fixed_in(self) -> Optional[str]:
        return self.upstream.fixed_in

    @property
    def numbers(self) -> tuple[int, ...]:
        """Issue and pull request numbers."""
        return (*self.upstream.issues, *self.upstream.pull_requests)

    @property
    def is_bug(self) -> bool:
        return self.group not in ("feature", "environment")

    @property
    def advice(self) -> str:
        return self.do or f"Move to Lightning {self.move_to}"


ADVISORY = "GHSA-w37p-236h-pfx3"
ADVICE = "do not import it: uninstall it, install 2.6.1 or 2.6.4, and replace every secret that this machine could read"
"""Advice about the two releases that were compromised on PyPI."""

WITH_PKG_RESOURCES = "setuptools<82"
"""Releases of setuptools that have ``pkg_resources``; 81.0.0 is the last one."""

UNPATCHED = (
    Unpatched(
        name="compromised-release",
        title="The release on PyPI was not made by Lightning's authors",
        group="security",
        affected=("==2.6.2", "==2.6.3"),
        upstream=Upstream(fixed_in="2.6.4"),
        impact=Impact(
            "The package runs hostile code when it is imported. The code sends passwords and keys to the attacker.",
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
            "parameters again. That is slow, and weights can be lost.",
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
            "Trainer or Fabric does not use it.",
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
)

UNCOUNTED = (
    Unpatched(
        name="validation-by-optimizer-steps",
        title="Validation every N optimizer steps",
        group="feature",
        upstream=Upstream(issues=(12205, 17207, 19740)),
        impact=Impact(
            "val_check_interval counts batches, not optimizer steps. If the number of batches per epoch is not a "
            "multiple of accumulate_grad_batches, the last step of an epoch has fewer batches, so the number of steps "
            "between validations changes.",
            (
                "val_check_interval counts batches and not optimizer steps with accumulate_grad_batches",
                "val_check_interval is not in global steps under gradient accumulation",
                "the step of validation and checkpoints drifts with accumulate_grad_batches",
                "validate every n optimizer steps with gradient accumulation",
            ),
        ),
        do="Use Trainer(val_check_interval=steps * accumulate_grad_batches, check_val_every_n_epoch=None), and "
        "set limit_train_batches to a multiple of accumulate_grad_batches",
    ),
    Unpatched(
        name="log-of-a-dict",
        title="self.log of a dict of metrics",
        group="feature",
        upstream=Upstream(issues=(19620,)),
        impact=Impact(
            "self.log takes one number per name and refuses a dict. self.log_dict refuses nested dicts.",
            ("`self.log(...)` was called, but `dict` values cannot be logged", "nested dictionaries cannot be logged"),
            frames=("lightning/pytorch/core/module.py",),
        ),
        do='Use self.log_dict({f"{name}/{key}": value for key, value in metrics.items()}), which logs each value '
        "under its own name. For several lines in one plot, call the logger directly, for example "
        "self.logger.experiment.add_scalars with TensorBoard",
    ),
    Unpatched(
        name="mps-in-a-python-for-intel",
        title="Apple's GPU in a Python that runs under Rosetta",
        group="feature",
        upstream=Upstream(issues=(14634, 16124, 17707)),
        impact=Impact(
            "On a Mac with an Apple chip, Lightning does not use the GPU if Python is built for Intel "
            "(platform.processor() is i386). Upstream refuses it on purpose: it was slow, and most operations were "
            "missing.",
            (
                "`MPSAccelerator` can not run on your system since the accelerator is not available",
                "MPSAccelerator.is_available is replaced by hand, under Rosetta",
            ),
        ),
        do="Use a Python for arm64 (platform.machine() is arm64). With conda, create the environment with "
        "CONDA_SUBDIR=osx-arm64",
    ),
    Unpatched(
        name="two-packages-of-lightning",
        title="A module of pytorch_lightning in a Trainer of lightning, or the other way round",
        group="environment",
        upstream=Upstream(issues=(17153,)),
        impact=Impact(
            "`lightning` and `pytorch_lightning` are two packages with the same classes. The Trainer of one refuses "
            "modules, datamodules and callbacks of the other. A library that your program uses may import the other "
            "package.",
            (
                "`model` must be a `LightningModule` or `torch._dynamo.OptimizedModule`, got",
                "`model` must be a `LightningModule`, got",
            ),
            error="TypeError: `model` must be a `LightningModule` or `torch._dynamo.OptimizedModule`, got `...`",
        ),
        do="Import everything from one of the two, `lightning.pytorch` or `pytorch_lightning`, in all files: "
        "`grep -rnE 'pytorch_lightning|lightning.pytorch' --include='*.py' .` finds the imports. (A plain "
        "torch.nn.Module is refused with the same message: let it inherit from LightningModule)",
    ),
    Unpatched(
        name="plain-state-dict",
        title="The file contains only weights; it is not a checkpoint of Lightning",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "load_from_checkpoint and ckpt_path read what Trainer.save_checkpoint and ModelCheckpoint write. This file "
            "was written by torch.save(model.state_dict()), or by another library.",
            ("KeyError: 'pytorch-lightning_version'",),
            error="KeyError: 'pytorch-lightning_version'",
        ),
        do="Load it with `model.load_state_dict(torch.load(path, map_location='cpu'))`; if the weights are under a "
        "key, such as 'state_dict', pass its value",
    ),
    Unpatched(
        name="torch-without-libuv",
        title="This build of torch has no libuv, which process groups use by default",
        group="environment",
        upstream=Upstream(issues=(20238,)),
        impact=Impact(
            "From torch 2.4 on, the store of a process group uses libuv by default. Some builds of torch have no "
            "libuv: the wheels for Windows, and packages of some Linux distributions, such as Debian.",
            ("use_libuv was requested but PyTorch was",),
            error="RuntimeError: use_libuv was requested but PyTorch was built without libuv support",
        ),
        do="Set USE_LIBUV=0 before you start the program: `export USE_LIBUV=0` (cmd: `set USE_LIBUV=0`, PowerShell: "
        "`$env:USE_LIBUV=0`), or `os.environ['USE_LIBUV'] = '0'` above the import of torch",
    ),
    Unpatched(
        name="numpy-2-without-inf",
        title="NumPy 2 has no np.Inf, which Lightning below 2.1 uses",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "EarlyStopping and ModelCheckpoint of Lightning below 2.1 use np.Inf, which NumPy 2.0 removed.",
            ("`np.Inf` was removed in the NumPy 2.0 release",),
            error="AttributeError: `np.Inf` was removed in the NumPy 2.0 release. Use `np.inf` instead.",
        ),
        do='`pip install "numpy<2"`, or move to Lightning 2.1 or later. If the line is in your code, write np.inf',
    ),
    Unpatched(
        name="old-lightning-utilities",
        title="An old lightning-utilities imports pkg_resources, which setuptools 82 and later do not have",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "Lightning imports lightning-utilities, and its older releases import pkg_resources.",
            ("No module named 'pkg_resources'",),
            error="ModuleNotFoundError: No module named 'pkg_resources'",
            frames=("lightning_utilities/core/imports.py",),
        ),
        do=f'Run `pip install -U lightning-utilities`, or `pip install "{WITH_PKG_RESOURCES}"`',
        is_shared=True,
    ),
    Unpatched(
        name="mixed-releases",
        title="Packages of Lightning from different releases are installed together",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "The packages pytorch-lightning and lightning-fabric both contain lightning_fabric, and the one that is "
            "installed last overwrites the other. Releases of lightning-utilities or torchmetrics that Lightning "
            "does not allow fail with the same errors.",
            (
                "cannot import name '...' from 'lightning_fabric...",
                "cannot import name '...' from 'lightning.fabric...",
                "cannot import name '...' from 'lightning_utilities...",
                "No module named 'lightning_fabric.",
                "No module named 'lightning.fabric.",
                "No module named 'lightning_utilities.",
                "module 'lightning_fabric' has no attribute",
            ),
            error="ImportError: cannot import name '...' from 'lightning_fabric...' (...)",
            frames=("/pytorch/", "/fabric/", "lightning_utilities/", "torchmetrics/"),
        ),
        do="Run `pip uninstall -y lightning pytorch-lightning lightning-fabric lightning-utilities`, and then "
        "`pip install` the package that your program imports",
        is_shared=True,
    ),
    Unpatched(
        name="monitored-metric-missing",
        title="A callback monitors a metric that was not logged under that name",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "EarlyStopping and ModelCheckpoint look up `monitor` among the metrics that self.log has logged. The "
            "error lists the logged names.",
            (
                "Early stopping conditioned on metric ... which is not available",
                "could not find the monitored key in the returned metrics",
            ),
            error="RuntimeError: Early stopping conditioned on metric `...` which is not available.",
        ),
        do="Log the metric under exactly that name, for example `self.log('val_loss', ...)` in validation_step, and "
        "run a validation before the callback reads it (val_dataloaders, limit_val_batches, check_val_every_n_epoch)",
    ),
    Unpatched(
        name="weights-only-load",
        title="torch 2.6 and later load only plain values from a checkpoint, unless you pass weights_only=False",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "The checkpoint contains objects of other classes, for example in its hyperparameters. torch.load refuses "
            "them with weights_only=True, which is the default since torch 2.6.",
            ("Weights only load failed", "WeightsUnpickler error: Unsupported global"),
            error="_pickle.UnpicklingError: Weights only load failed.",
        ),
        do="If the file is your own: put `lightning_patches.trust_checkpoints('DIRECTORY OF THE CHECKPOINT')` below "
        "`import lightning_patches` at the top of the script. In your own torch.load calls, pass `weights_only=False`",
    ),
    Unpatched(
        name="app-requirements",
        title="The package lightning below 2.1 needs the App framework, whose requirements are missing or incompatible",
        group="environment",
        affected=("<2.1.0",),
        upstream=Upstream(fixed_in="2.1.0"),
        impact=Impact(
            "`import lightning` imports lightning.app, and with it fastapi, pydantic, starlette, lightning-cloud and "
            "about 15 more packages. One of them is not installed, or two of them are incompatible: newer releases "
            "of fastapi need pydantic 2, and Lightning 2.0.0 to 2.0.6 need pydantic 1.",
            (
                "No module named 'fastapi'",
                "No module named 'lightning_cloud'",
                "/lightning/app/ ... No module named '",
                "cannot import name 'TypeAdapter' from 'pydantic'",
                "cannot import name 'IncEx' from 'pydantic.main'",
                "cannot import name 'ModelMetaclass' from 'pydantic.main'",
                "/lightning/app/ ... /fastapi/ ... cannot import name '... from 'pydantic",
            ),
            error="ImportError: cannot import name 'TypeAdapter' from 'pydantic' (...)",
            frames=("/lightning/app/",),
        ),
        distributions=("lightning",),
        do="Run `pip install lightning==VERSION` with your version and without `--no-deps`: pip installs missing "
        "packages and replaces incompatible ones. Or install pytorch-lightning in the same version and import "
        "pytorch_lightning: it has no App framework",
        is_shared=True,
    ),
    Unpatched(
        name="devices-unlike-launcher",
        title="torchrun started more or fewer processes than devices * num_nodes",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            'Under torchrun, devices must equal the number of processes per node. The default, devices="auto", is '
            "the number of GPUs, or 1 on the CPU.",
            ("in Lightning, but the product ... does not match the world size",),
            error="ValueError: You set `devices=...` and `num_nodes=...` in Lightning, but the product (... * ...) "
            "does not match the world size (...).",
            frames=("plugins/environments/torchelastic.py",),
        ),
        do="Set `devices=` of Trainer or Fabric to `--nproc_per_node`, and `num_nodes=` to `--nnodes`. On the CPU, "
        "always set `devices=N`",
    ),
    Unpatched(
        name="store-kept-at-restart",
        title="After a restart by torchrun, Gloo connects to processes that have ended",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "torchrun (--max-restarts) restarts the processes, but keeps the store that holds their addresses. Gloo "
            "reads an address of the previous attempt, where no process listens any more.",
            ("Gloo connectFullMesh failed with ... Connection refused",),
            error="RuntimeError: Gloo connectFullMesh failed with ... timed out connecting: SO_ERROR: Connection "
            "refused, remote=...",
        ),
        do="If torchrun has restarted the processes, set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and start torchrun with "
        "`--rdzv-backend=c10d --rdzv-endpoint=HOST:PORT`, not with --master-port. Otherwise the process at that "
        "address has ended, and its log shows why",
    ),
    Unpatched(
        name="config-of-a-previous-run",
        title="LightningCLI refuses to overwrite the config.yaml of a previous run in the same directory",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "LightningCLI saves its configuration once in each log directory. A job that is requeued or resumed in "
            "the same directory finds the file of its first start, and so does each run with logger=False in the "
            "same default_root_dir.",
            ("SaveConfigCallback expected ... to NOT exist. Aborting to avoid overwriting",),
            error="RuntimeError: SaveConfigCallback expected .../config.yaml to NOT exist. Aborting to avoid "
            "overwriting results of a previous run.",
            frames=("/pytorch/cli.py",),
        ),
        do='For requeued jobs, use `LightningCLI(..., save_config_kwargs={"overwrite": True})`. For a new run, use '
        "another directory (`--trainer.default_root_dir`, or the logger's version)",
    ),
    Unpatched(
        name="script-without-main-guard",
        title="DataLoader workers import the script (the default from Python 3.14 on), and it has no `__main__` guard",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "Workers that start with spawn or forkserver import the script. From Python 3.14 on, forkserver is the "
            "default on Linux (before, it was fork). On macOS and Windows, spawn is the default.",
            (
                "An attempt has been made to start a new process before the current process has finished its "
                "bootstrapping phase",
                "An attempt has been made to start a new process before the",
            ),
            error="RuntimeError: An attempt has been made to start a new process before the current process has "
            "finished its bootstrapping phase.",
        ),
        do='Put the code that starts the training under `if __name__ == "__main__":`. On Linux, `DataLoader(..., '
        'multiprocessing_context="fork")` works without the guard',
    ),
    Unpatched(
        name="object-not-picklable-for-workers",
        title="The dataset or a function of the DataLoader can't be pickled, which workers need from Python 3.14 on",
        group="environment",
        upstream=Upstream(),
        impact=Impact(
            "With spawn and forkserver, the dataset is pickled. Pickle accepts only functions and classes that are "
            "defined at the top level of a module: no lambdas, no definitions inside a function. From Python 3.14 on, "
            "forkserver is the default on Linux (before, it was fork, without pickle). On macOS and Windows, spawn is "
            "the default.",
            (
                "Can't pickle local object",
                "Can't pickle <function",
                "Can't get local object",
            ),
            error="AttributeError: Can't pickle local object '...'",
            frames=("multiprocessing/popen_spawn", "multiprocessing/popen_forkserver"),
        ),
        do="Move the lambda, function or class that the error names to the top level of a module. On Linux, "
        '`DataLoader(..., multiprocessing_context="fork")` works without that. If ddp_spawn started the process, use '
        'strategy="ddp"',
        is_shared=True,
    ),
)
