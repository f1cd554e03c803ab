"""PR 19627: @torch.compile(...) fails once Fabric was imported."""

import subprocess
import sys

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import ROOT, Variant, _releases, run


@pytest.mark.parametrize("shim", [False, True])
def test_arguments_of_a_compiled_module_are_kept(shim):
    result = run("compile_as_decorator", Variant("lightning", "2.2.1", shim), "module")
    assert result.observations == [{"kwargs": {"backend": "eager", "dynamic": False}}], result


def test_works_if_lightning_was_imported_first():
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


PROOFS = (
    Proof(
        "compile-as-decorator",
        ends_with("compile() missing 1 required positional argument: 'model'"),
        right=observes({"more": [(2.0).hex()]}),
    ),
)
