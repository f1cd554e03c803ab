"""With Hydra, all ranks of DDP use the output directory of rank zero."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _rank_command(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _hydra_subprocess_cmd(local_rank: int) -> tuple[Sequence[str], str]:
        from hydra.core.hydra_config import HydraConfig  # type: ignore[import-not-found]

        (*command, directory, job), cwd = original(local_rank)
        runtime = HydraConfig.get().runtime
        if "output_dir" in runtime:  # Hydra 1.1 does not have it, but always works in that directory
            directory = f'hydra.run.dir="{runtime.output_dir}"'
        return [*command, directory, job, "hydra.output_subdir=null"], cwd

    return _hydra_subprocess_cmd


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "the directory to which the ranks write"),
    affected=(">=1.8.3,<2.0.7",),
    targets=(
        Target("fabric.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _rank_command),
        Target("lite.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _rank_command),
    ),
    upstream=Upstream(
        pull_requests=(18145,),
        commit="ebbd5382e4",
        fixed_in="2.0.7",
        tests=("tests/tests_pytorch/strategies/launchers/test_subprocess_script.py::test_ddp_with_hydra_runjob",),
    ),
    impact=Impact(
        "In a script with @hydra.main(version_base=None), all ranks of DDP except the first use the current "
        "directory as Hydra's output directory. If Hydra changes the directory, these ranks overwrite the "
        "configuration that Hydra saved.",
        ("train_ddp_process_1.log in the current directory", "hydra.yaml has the name train_ddp_process_1"),
    ),
    note="The ranks use the directory that Hydra chose for rank zero; the fixed releases evaluate "
    "hydra.run.dir again, which may give another directory. In a multirun each rank still has its own "
    "directory, on every release, because Lightning passes --multirun on. With hydra.job.chdir=True and "
    "with Hydra 1.1, all ranks work in the same directory as without the patch. Without chdir, a rank's "
    "log, and files that it writes to HydraConfig.get().runtime.output_dir, are in rank zero's directory. "
    "On all ranks except the first, HydraConfig.get().output_subdir is None, as from 2.0.7 on.",
)
