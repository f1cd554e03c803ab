"""The checks of the simulated device pass on a real GPU."""

import subprocess
import sys

import pytest
import torch

from tests.support.variants import ROOT


@pytest.mark.parametrize("program", ["conformance.py", "distributed_program.py"])
def test_gpu_passes_the_conformance_program(program):
    runner = ["-m", "pytest", "-p", "no:cacheprovider", "--noconftest"] if program == "conformance.py" else []
    if not runner and torch.cuda.device_count() < 2:
        pytest.skip("NCCL needs a card for each rank")
    command = [sys.executable, *runner, str(ROOT / "tests" / "simulated_cuda" / program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
