"""DDP starts the other ranks of an archive or a directory as ``python -m __main__``. Cases: ``archive``, ``directory``;
``torchrun`` starts the ranks of an archive; ``script`` and ``package`` (``python -m app``) work on stock."""

from _expect import bug, fixed, same, whole_run

BUG = "module specification for '__main__'"

EXPECT = [
    bug(
        "archive",
        stock=whole_run(lambda result: not result.ok and BUG in result.output),
        patched=whole_run(lambda result: [rank["ranks"] for rank in result.observations] == [2, 2]),
        like="torchrun",
        compare=("ranks", "options"),
    ),
    same(["script", "package"], "other programs start as on stock"),
    fixed("directory", "ranks of a directory start", stock=whole_run(lambda result: BUG in result.output), patched={}),
]

import os
import subprocess
import sys
import zipfile
from pathlib import Path

CASE = os.environ["SCENARIO_CASE"]
PROGRAM = """
import os
import sys

import _scenario as scenario

if __name__ == "__main__":
    trainer = scenario.trainer(devices=2, strategy="ddp", max_steps=1, limit_val_batches=0)
    trainer.fit(scenario.boring_model()())
    scenario.observe(ranks=trainer.world_size, options=sys.argv[1:], name=os.path.basename(sys.argv[0]))
"""


def command():
    """Write the program, and return the arguments that start it."""
    if CASE == "script":
        Path("train.py").write_text(PROGRAM)
        return ["train.py"]
    if CASE in ("package", "directory"):
        Path("app").mkdir()
        Path("app", "__main__.py").write_text(PROGRAM)
        return ["-m", "app"] if CASE == "package" else ["app"]
    with zipfile.ZipFile("app.pyz", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"] if CASE == "torchrun" else []
    return [*launcher, "app.pyz"]


if __name__ == "__main__":
    sys.exit(abs(subprocess.run([sys.executable, *command(), "--option", "1"]).returncode))
