"""Behavior of other software that our code and pages rely on. If a test fails, look for code that must change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_compile_ignores_a_wrapper_of_wrapt() -> None:
    """Replacements are plain functions for this reason (upstream/DESIGN.md)."""
    import torch
    import wrapt

    @wrapt.decorator
    def doubled(wrapped, instance, arguments, options):
        return 2 * wrapped(*arguments, **options)

    class Module(torch.nn.Module):
        @doubled
        def method(self, x):
            return x + 1

        def forward(self, x):
            return self.method(x)

    module, x = Module(), torch.ones(())
    assert module(x) == 4
    assert torch.compile(module, backend="eager", fullgraph=True)(x) == 2


@pytest.mark.parametrize(("disable", "seen"), [("0", ["new", "kept"]), ("1", ["new", "new"])])
def test_torchrun_keeps_the_store_at_a_restart(tmp_path: Path, disable: str, seen: list[str]) -> None:
    """``store-kept-at-restart`` says so. Gloo then finds addresses of processes that have ended."""
    program = tmp_path / "program.py"
    program.write_text(
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "store = dist.distributed_c10d._get_default_store()\n"
        "print('store', 'new' if store.add('attempts', 1) == 1 else 'kept', flush=True)\n"
        "raise SystemExit(1)\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1", str(program)]
    environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": disable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(torchrun, env=environment, stdout=subprocess.PIPE, text=True, timeout=120)
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("store")] == seen


@pytest.mark.parametrize("workers", [0, 1])
def test_stateful_loader_resumes_with_an_empty_pass_from_its_last_batch(workers: int) -> None:
    """Lightning saves there, and ``resume-on-last-batch`` and the manual take account of it."""
    StatefulDataLoader = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader  # noqa: N806
    loader = StatefulDataLoader(range(6), batch_size=2, num_workers=workers)
    in_loop = [loader.state_dict() for _ in loader][-1]
    passes = []
    for state in (in_loop, loader.state_dict()):
        restored = StatefulDataLoader(range(6), batch_size=2, num_workers=workers)
        restored.load_state_dict(state)
        passes.append([len(list(restored)) for _ in range(2)])
    assert passes == [[0, 3], [3, 3]]
