"""These tests need a real GPU; one card is enough: `python -m pytest -m gpu tests/gpu --junitxml=gpu.xml`.

Their requirements besides torch are in setup.cfg (extra "test", without mypy and ruff). For a machine without a
network, `scripts/carry` collects the packages and the wheels of Lightning. `scripts/prove --gpu-results gpu.xml` adds
the results to the proof of a release.
"""

import platform
import subprocess
from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list) -> None:
    why = None if torch.cuda.is_available() else f"no GPU for torch {torch.__version__}"
    for item in items:
        if item.path.parent.name == "gpu":
            item.add_marker(pytest.mark.gpu)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session", autouse=True)
def circumstances(record_testsuite_property) -> None:
    """Record machine and commit in the report."""
    try:
        git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        commit = ""
    record_testsuite_property("card", torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none")
    record_testsuite_property("torch", f"{torch.__version__}, CUDA {torch.version.cuda}")
    record_testsuite_property("Python", platform.python_version())
    record_testsuite_property("commit", commit or "not known")
