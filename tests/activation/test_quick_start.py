"""The README's first example prints what the README says."""

import re
import subprocess
import sys

import pytest

from tests.support import variants
from tests.support.variants import ROOT, Variant

PROGRAM = ROOT / "scripts" / "_demo_programs" / "lr_finder_callback.py"
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["python train.py", "lightning-patches run train.py"])
def test_readme_example_prints_as_shown(command, tmp_path):
    (shown,) = re.findall(rf"\$ {command}.*\n    (.*)\n    (.*)\n", README)
    run = ["-m", "lightning_patches", "run"] if "run" in command else []
    done = subprocess.run(
        [sys.executable, *run, str(PROGRAM)],
        env=variants.environment_of(Variant("lightning", "2.2.5")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines()[-2:] == list(shown), done


def test_lazily_loaded_names_are_listed():
    import lightning_patches

    assert {"watch_hangs", "rank_by_rank", "GradientSyncCheck"} <= set(dir(lightning_patches))
    assert "TYPE_CHECKING" not in dir(lightning_patches)
