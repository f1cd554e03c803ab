"""Under Hydra, all ranks of DDP use the output directory of rank zero."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title


def _rank_command(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _hydra_subprocess_cmd(local_rank: int) -> tuple[Sequence[str], str]:
        from hydra.core.hydra_config import HydraConfig  # type: ignore[import-not-found]

        (*command, directory, job), cwd = original(local_rank)
        runtime = HydraConfig.get().runtime
        if "output_dir" in runtime:  # not in Hydra 1.1, which always works in that directory
            directory = f'hydra.run.dir="{runtime.output_dir}"'
        return [*command, directory, job, "hydra.output_subdir=null"], cwd

    return _hydra_subprocess_cmd


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    group="correctness",
    changes_results=Effect("files", "the directory where the ranks write"),
    affected=(">=1.9.0,<2.0.7",),
    targets=(Target("fabric.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _rank_command),),
    upstream=Upstream(
        pull_requests=(18145,),
        commit="ebbd5382e4",
        fixed_in="2.0.7",
        tests=("tests/tests_pytorch/strategies/launchers/test_subprocess_script.py::test_ddp_with_hydra_runjob",),
    ),
    impact=Impact(
        "In a script with @hydra.main(version_base=None), Hydra's output directory is the current directory on all "
        "ranks of DDP but the first. If Hydra changes the directory, these ranks overwrite the configuration that it "
        "saved.",
        ("train_ddp_process_1.log in the current directory", "hydra.yaml has the name train_ddp_process_1"),
    ),
    note="In a multirun each rank still has its own directory, on every release, because Lightning passes --multirun "
    "on. The directory is the one that Hydra works with; the fixed releases evaluate hydra.run.dir again, which gives "
    "another directory if a resolver draws its name. With hydra.job.chdir=True and with Hydra 1.1, all ranks work in "
    "the same directory as without the patch. Without chdir, the log of a rank, and files that it writes to "
    "HydraConfig.get().runtime.output_dir, are next to those of rank zero. On all ranks but the first "
    "HydraConfig.get().output_subdir is None, as from 2.0.7 on.",
)
