"""Features that 2.0 removed: small scripts for 1.x run on 2.x, and `diagnose` explains their errors."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lightning_patches.cli.diagnose import candidates, read
from lightning_patches.cli.diagnose import script as scripts
from lightning_patches.patches.removed import Removed, rows
from tests.unit.commands import Diagnose

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

BORING = "from pytorch_lightning.demos.boring_classes import BoringModel\n"
PL = "import pytorch_lightning as pl\n"
FIT = "pl.Trainer(max_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator='cpu')"


def model(method: str) -> str:
    """Return a script that trains a model with this method."""
    body = textwrap.indent(textwrap.dedent(method).strip(), "    ")
    return f"{BORING}import pytorch_lightning as pl\nclass Net(BoringModel):\n{body}\n{FIT}.fit(Net())"


SCRIPTS = {
    f"{PL}pl.Trainer(gpus=1)": "Trainer(gpus=)",
    f"{PL}pl.Trainer(progress_bar_refresh_rate=20, max_epochs=1)": "Trainer(progress_bar_refresh_rate=)",
    f"{PL}pl.Trainer(resume_from_checkpoint='a.ckpt')": "Trainer(resume_from_checkpoint=)",
    f"{PL}pl.Trainer(auto_lr_find=True)": "Trainer(auto_lr_find=)",
    f"{PL}pl.Trainer(checkpoint_callback=True)": "Trainer(checkpoint_callback=)",
    f"{PL}pl.Trainer(strategy='ddp_sharded')": 'Trainer(strategy="ddp_sharded")',
    f"{PL}pl.Trainer(strategy='dp')": 'Trainer(strategy="dp")',
    f"{PL}pl.Trainer(accelerator='ddp')": 'Trainer(accelerator="ddp")',
    f"import argparse\n{PL}pl.Trainer.add_argparse_args(argparse.ArgumentParser())": "Trainer.add_argparse_args",
    f"import argparse\n{PL}pl.Trainer.from_argparse_args(argparse.Namespace())": "Trainer.from_argparse_args",
    f"{PL}class Data(pl.LightningDataModule): ...\nData.from_argparse_args({{}})": (
        "LightningDataModule.from_argparse_args"
    ),
    f"{PL}{BORING}pl.Trainer(accelerator='cpu').tune(BoringModel())": "Trainer.tune",
    f"{PL}pl.Trainer(accelerator='cpu').training_type_plugin": "Trainer.training_type_plugin",
    "from pytorch_lightning.utilities.cli import LightningCLI": "import utilities.cli",
    "from pytorch_lightning.core.lightning import LightningModule": "import core.lightning",
    "from pytorch_lightning.callbacks.base import Callback": "import callbacks.base",
    "from pytorch_lightning.utilities.cloud_io import load": "import utilities.cloud_io",
    "from pytorch_lightning.plugins.environments.slurm_environment import SLURMEnvironment": (
        "import plugins.environments.slurm_environment"
    ),
    "from pytorch_lightning.plugins.training_type.ddp import DDPPlugin": "import plugins.training_type",
    "from pytorch_lightning.profiler import SimpleProfiler": "import profiler",
    "from pytorch_lightning.plugins import DDPPlugin": "from plugins import DDPPlugin",
    "from pytorch_lightning.loggers import LightningLoggerBase": "from loggers import LightningLoggerBase",
    "from pytorch_lightning.callbacks import XLAStatsMonitor": "from callbacks import XLAStatsMonitor",
    "from pytorch_lightning.utilities.types import EPOCH_OUTPUT": "from utilities.types import EPOCH_OUTPUT",
    "from pytorch_lightning.utilities.seed import seed_everything": "from utilities.seed import seed_everything",
    f"{PL}pl.metrics.Accuracy()": "import metrics",
    "from pytorch_lightning import EvalResult": "from . import EvalResult",
    model("def training_epoch_end(self, outputs): ..."): "def training_epoch_end",
    model("def validation_epoch_end(self, outputs): ..."): "def validation_epoch_end",
    model("def on_train_epoch_end(self, outputs): ..."): "def on_train_epoch_end(outputs)",
    model("def training_step(self, batch, batch_idx, optimizer_idx): ..."): "def training_step(optimizer_idx)",
    model(
        "def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure, on_tpu=False): ..."
    ): "def optimizer_step(optimizer_idx)",
    model(
        "def on_before_optimizer_step(self, optimizer, optimizer_idx): ..."
    ): "def on_before_optimizer_step(optimizer_idx)",
    model("def on_train_start(self): self.get_progress_bar_dict()"): "LightningModule.get_progress_bar_dict",
    f"{PL}{BORING}{FIT}.fit(BoringModel(), train_dataloader=[])": "Trainer.fit(train_dataloader=)",
    f"{PL}pl.callbacks.ModelCheckpoint(period=1)": "ModelCheckpoint(period=)",
}
"""Scripts, and the row that is the answer to each."""

RUNNER = """
import os, sys, traceback, warnings
warnings.simplefilter("ignore")
import pytorch_lightning, pytorch_lightning.demos.boring_classes
sys.path.insert(0, os.getcwd())
for path in sys.argv[1:]:
    if os.fork() == 0:
        os.dup2(os.open(path + ".log", os.O_WRONLY | os.O_CREAT), 2)
        try:
            exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
        except BaseException as error:
            error.__traceback__ = error.__traceback__.tb_next
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module", params=["2.2.5", "2.6.6"])
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Path]]:
    """Write the output of each script on a release into a file."""
    directory = tmp_path_factory.mktemp("scripts")
    paths = [directory / f"train_{number}.py" for number in range(len(SCRIPTS))]
    for path, script in zip(paths, SCRIPTS):
        path.write_text(script)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(_releases.unpacked("pytorch-lightning", request.param))}
    command = [sys.executable, "-c", RUNNER, *map(str, paths)]
    subprocess.run(command, env=environment, cwd=directory, check=True, timeout=500, stdout=subprocess.DEVNULL)
    return request.param, [Path(f"{path}.log") for path in paths]


def test_error_of_a_1x_script_names_the_removed_name(diagnose: Diagnose, logs: tuple[str, list[Path]]) -> None:
    version, paths = logs
    wrong = {}
    for path, (script, wanted) in zip(paths, SCRIPTS.items()):
        found = diagnose.json(path, "--requirement", f"pytorch-lightning=={version}")["matches"]
        if [(match["name"], match["kind"]) for match in found[:1]] != [(wanted, "found")] or not found[0]["cause"]:
            wrong[script] = (path.read_text()[-600:], [(match["name"], match["kind"]) for match in found])
    assert not wrong
    assert len(SCRIPTS) >= 16


@pytest.mark.parametrize(("script", "wanted"), SCRIPTS.items(), ids=SCRIPTS.values())
def test_diagnose_finds_removed_names_in_a_script(diagnose: Diagnose, script: str, wanted: str) -> None:
    path = diagnose.write("train.py", script)
    names = [match["name"] for match in diagnose.json(path, "--requirement", "pytorch-lightning==2.6.6")["matches"]]
    # A missing attribute of the user's own object is found from the error at run time, not from the script.
    assert names == ([] if wanted.startswith(("LightningDataModule.", "LightningModule.")) else [wanted])


def test_diagnose_answers_every_removed_name_of_a_script(diagnose: Diagnose) -> None:
    path = diagnose.write(
        "train.py",
        "import pytorch_lightning as pl\n"
        "from pytorch_lightning.core.lightning import LightningModule\n"
        "class Net(LightningModule):\n"
        "    def on_epoch_end(self): ...\n"
        "trainer = pl.Trainer(gpus=2, accelerator='ddp')\n",
    )
    diagnose(path, "--requirement", "pytorch-lightning==2.2.5")
    printed = " ".join(diagnose.out.split())
    for words in ("import core.lightning", "def on_epoch_end", 'accelerator="gpu", devices=...', 'strategy="ddp"'):
        assert words in printed
    assert "never call `def on_epoch_end`" in printed


def test_release_with_the_name_gets_no_answer(diagnose: Diagnose) -> None:
    path = diagnose.write("train.py", "import pytorch_lightning as pl\npl.Trainer(gpus=2)\n")
    (match,) = diagnose.json(path, "--requirement", "pytorch-lightning==1.9.5")["matches"]
    assert match["kind"] == "ruled out" and "pytorch-lightning 1.9.5 has it" in match["advice"]


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: Net.__init__() got an unexpected keyword argument 'gpus'",
        "AttributeError: 'Net' object has no attribute 'tune'",
        "AttributeError: 'Net' object has no attribute 'gpus'",
        "ImportError: cannot import name 'DDPPlugin' from 'my_package.plugins' (/src/my_package/plugins.py)",
        "ModuleNotFoundError: No module named 'my_package.utilities.cli'",
        "ModuleNotFoundError: No module named 'pytorch_lightning'",
        "TypeError: Net.on_train_epoch_end() missing 1 required positional argument: 'loss'",
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'gradient_checkpointing'",
        "File \"/transformers/trainer.py\", line 3, in x\nAttributeError: 'Trainer' object has no attribute 'use_amp'",
    ],
)
def test_weak_match_gets_no_answer(text: str) -> None:
    found = candidates.find(read.from_text("job.log", text))
    assert not [match for match in found if isinstance(match.record, Removed)]


@pytest.mark.parametrize(
    "script",
    [
        "class Trainer:\n    def __init__(self, gpus): ...\nTrainer(gpus=1)",
        "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n"
        "    def on_epoch_end(self): ...\n    def on_train_epoch_end(self): self.on_epoch_end()\n",
        "import pytorch_lightning as pl\npl.Trainer(accelerator='gpu', devices=2, strategy='ddp')",
        "from lightning.pytorch.callbacks import Callback, ModelCheckpoint, TQDMProgressBar",
    ],
)
def test_error_unrelated_to_1x_gets_no_answer(script: str) -> None:
    assert scripts.find("train.py", script) == []


def test_every_row_is_unambiguous() -> None:
    assert len(rows()) > 100
    assert len({row.name for row in rows()}) == len(rows())
