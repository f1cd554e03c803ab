import subprocess
import sys

from tests.support.variants import ROOT, _releases


def test_decorator_works_if_lightning_was_imported_first():
    program = (
        "import torch, lightning.fabric, lightning_patches\n"
        "print(torch.compile(backend='eager')(lambda x: x + 1)(torch.ones(1)).item())"
    )
    paths = f"{_releases.unpacked('lightning', '2.2.1')}:{ROOT}"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == "2.0\n", result
