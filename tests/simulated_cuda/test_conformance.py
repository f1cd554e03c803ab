"""Tests of the simulated CUDA device. Each program runs in a new process."""

import os
import pathlib
import sys

import pytest

from tests.support.run import execute, variables
from tests.support.variants import no_simulated_cuda

HERE = pathlib.Path(__file__).resolve().parent
SITE = HERE / "site"

BUILD_SECONDS = 400  # the first test that needs the library compiles it
pytestmark = [
    pytest.mark.skipif(bool(no_simulated_cuda()), reason=no_simulated_cuda()),
    pytest.mark.timeout(BUILD_SECONDS + 200),
]


@pytest.fixture
def python(tmp_path):
    """Return a function that runs Python in a new session, which is always killed at the end.

    It returns the exit status and the output.
    """

    def run(*arguments, seconds=BUILD_SECONDS, active=True, before=(), after=(), **environment):
        more = {key: str(value) for key, value in environment.items()}
        more |= {"SIMULATED_CUDA": "1" if active else "0"}
        found = variables(PYTHONPATH=os.pathsep.join(map(str, [*before, SITE, *after])), **more)
        status, output = execute([sys.executable, *map(str, arguments)], found, seconds, tmp_path, patience=0)
        assert status != 124, f"not finished after {seconds} s:\n{output}"
        return status, output

    return run


@pytest.mark.parametrize("devices", [2, 1])
def test_device_behaves_like_cuda(python, devices):
    options = ("-p", "no:cacheprovider", "--noconftest", HERE / "conformance.py")
    status, output = python("-m", "pytest", *options, SIMULATED_CUDA_DEVICE_COUNT=devices)
    assert status == 0, output
    assert ("skipped" in output) == (devices == 1), output


@pytest.mark.distributed
def test_two_processes_with_nccl(python):
    status, output = python(HERE / "distributed_program.py")
    assert status == 0, output
    assert "all parts passed on both ranks" in output


def test_simulation_is_off_by_default(python):
    program = "import sys, torch; print('simulated_cuda' in sys.modules)"
    status, output = python("-c", program, active=False)
    assert (status, output) == (0, "False\n")


def test_missing_compiler_is_reported(python, tmp_path):
    status, output = python("-c", "import torch", CXX="/nowhere/c++", LIGHTNING_PATCHES_TEST_CACHE=tmp_path / "cache")
    assert status != 0
    assert "ImportError: The simulated GPUs need a C++ compiler. Install /nowhere/c++, or" in output
