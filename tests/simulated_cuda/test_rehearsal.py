"""A rehearsal of the GPU tests: the simulated device replaces the GPU in every process.

`scripts/rehearse` does the same with another Python and another torch.
"""

import os
import shutil
import sys

import pytest

from tests.equivalence import boundaries
from tests.support import ports, variants
from tests.support.run import end, execute, start

import _releases  # isort: skip  (tests.support.variants has put scripts/ on the path)

PROGRAM = """
import sys, torch, torch.distributed as dist
rank, port = map(int, sys.argv[1:])
dist.init_process_group("cuda:gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
tensor = torch.full((2,), rank + 1.0, device="cuda:0")
dist.all_reduce(tensor)
assert tensor.tolist() == [3.0, 3.0], tensor
try:
    dist.all_reduce(tensor.cpu())
except RuntimeError as error:
    assert "No backend type associated with device type cpu" in str(error), error
else:
    raise AssertionError("a CPU tensor went through")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def variables():
    """The variables of a machine with one card."""
    variants._build_simulated_cuda()
    return {
        **os.environ,
        "SIMULATED_CUDA": "1",
        "SIMULATED_CUDA_DEVICE_COUNT": "1",
        "PYTHONPATH": str(variants.SIMULATED_CUDA_SITE),
    }


def test_two_ranks_share_one_card(variables, tmp_path):
    port, ranks = ports.free_port(), []
    for rank in range(2):
        with open(tmp_path / f"{rank}.txt", "w") as output:
            ranks.append(start([sys.executable, "-c", PROGRAM, str(rank), str(port)], output, variables))
    try:
        statuses = [rank.wait(240) for rank in ranks]
    finally:
        for rank in ranks:
            end(rank.pid)
    assert statuses == [0, 0], [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]


@pytest.fixture
def on_the_machine(variables, tmp_path):
    """Run a command on a simulated machine without a network, with only the carried part of the tests' cache.

    Return its output. It must succeed.
    """
    cache = tmp_path / "cache"
    (cache / "wheels").mkdir(parents=True)
    for wheel in boundaries.wheels_to_carry():
        shutil.copy(wheel, cache / "wheels")
    for library in _releases.cache_dir().glob("simulated_cuda-*.so"):
        shutil.copy(library, cache)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "LIGHTNING_PATCHES_TEST_CACHE": str(cache)}

    def run(*command):
        environment = {**variables, **offline}
        status, output = execute([sys.executable, *map(str, command)], environment, 1700, variants.ROOT, patience=0)
        assert status == 0, output
        return output

    return run


def test_simulation_is_calibrated_on_the_gpu(on_the_machine):
    printed = on_the_machine("-m", "pytest", "-p", "no:cacheprovider", "-m", "gpu", "tests/gpu/test_calibration.py")
    assert "1 passed, 1 skipped" in printed, printed  # NCCL needs two cards for two ranks


@pytest.mark.equivalence
@pytest.mark.timeout(1800)
def test_scenarios_show_their_bug_on_the_gpu(on_the_machine):
    options = ("-p", "no:cacheprovider", "-m", "gpu", "tests/gpu/test_scenarios.py")
    printed = on_the_machine("-m", "pytest", *options)
    assert f"{len(boundaries.on_one_card())} passed" in printed, printed
