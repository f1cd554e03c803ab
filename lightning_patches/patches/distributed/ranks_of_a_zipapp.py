"""DDP starts the other ranks of an archive or a directory with a __main__.py."""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

from lightning_patches.patch import Impact, Patch, Target


def _basic_command(original: Callable[..., Sequence[str]], namespace: str) -> Callable[..., Sequence[str]]:
    def _basic_subprocess_cmd() -> Sequence[str]:
        return _with_path(original(), os.getcwd())

    return _basic_subprocess_cmd


def _hydra_command(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _hydra_subprocess_cmd(local_rank: int) -> tuple[Sequence[str], str]:
        command, cwd = original(local_rank)
        return _with_path(command, cwd), cwd

    return _hydra_subprocess_cmd


def _hydra_command_alone(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _hydra_subprocess_cmd(local_rank: int) -> Sequence[str]:
        from hydra.utils import get_original_cwd  # type: ignore[import-not-found]

        return _with_path(original(local_rank), get_original_cwd())

    return _hydra_subprocess_cmd


def _with_path(command: Sequence[str], cwd: str) -> Sequence[str]:
    """Replace ``-m __main__``, which Python always refuses, by the path that Python runs."""
    import __main__

    if list(command[1:3]) != ["-m", "__main__"]:
        return command
    spec: Any = __main__.__spec__
    return [command[0], os.path.join(cwd, os.path.dirname(spec.origin)), *command[3:]]


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("fabric.strategies.launchers.subprocess_script:_basic_subprocess_cmd", _basic_command),
        Target("fabric.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _hydra_command),
        Target("lite.strategies.launchers.subprocess_script:_basic_subprocess_cmd", _basic_command),
        Target("lite.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _hydra_command, since="1.8.3"),
        Target(
            "lite.strategies.launchers.subprocess_script:_hydra_subprocess_cmd", _hydra_command_alone, before="1.8.3"
        ),
    ),
    impact=Impact(
        "For `python app.pyz` or `python directory`, Lightning starts the other ranks with `python -m __main__`, "
        "which Python refuses. Rank 0 is then killed, or below 2.0 waits for the others.",
        ("Error while finding module specification for '__main__'", "__main__.__spec__ is None"),
        error="Error while finding module specification for '__main__' (ValueError: __main__.__spec__ is None)",
    ),
    note="Equivalent to `torchrun --nproc_per_node=N app.pyz`. Scripts and `python -m package` start as on stock.",
    after=("hydra-output-directory",),
)
