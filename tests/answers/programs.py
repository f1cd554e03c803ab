# ruff: noqa: E501
"""Small programs that fail on a release: what `diagnose` has to name, where each runs, and its source.

``-`` stands for what is no known bug. {P} is the package that the program imports.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = """\
import os, torch
import {P} as pl
from {P}.callbacks import *
from {P}.loggers import *
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Numbers(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, index):
        return torch.ones(4) * index

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.lr = 0.1
    def forward(self, x):
        return self.layer(x)
    def training_step(self, batch, batch_idx):
        return self(batch).pow(2).mean()
    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self(batch).pow(2).mean())
    test_step = validation_step
    def predict_step(self, batch, batch_idx):
        return self(batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)
    def train_dataloader(self):
        return DataLoader(Numbers(), 4)
    val_dataloader = test_dataloader = predict_dataloader = train_dataloader

QUIET = dict(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False)

"""
RUN = """
def main():
{BODY}

if __name__ == "__main__":
    main()
"""


class Program(NamedTuple):
    """One program.

    Args:
        expected: the record that has to be named, or several of which each is right, with " or " between them.
        releases: on which it runs, as ``lightning==2.2.5``.
        body: of its function ``main``.
        classes: above that.
    """

    expected: str
    releases: str
    body: str
    classes: str = ""


PROGRAMS = (
    Program("rich-progress-bar", "lightning==2.5.2 pytorch-lightning==2.1.3 lightning==2.3.3",
            "pl.Trainer(**{**QUIET, 'enable_progress_bar': True}, max_epochs=1, callbacks=RichProgressBar()).fit(Net())"),
    Program("finetuning-with-lr-finder", "lightning==2.5.2 pytorch-lightning==2.3.1",
            "pl.Trainer(**QUIET, max_epochs=1, callbacks=[LearningRateFinder(max_lr=1e-2, num_training_steps=4, "
            "update_attr=False, early_stop_threshold=None), BackboneFinetuning(unfreeze_backbone_at_epoch=1)], "
            "enable_checkpointing=False).fit(Tuned())",
            "class Tuned(Net):\n    def __init__(self):\n        super().__init__()\n"
            "        self.backbone = torch.nn.Linear(4, 4)\n    def forward(self, x):\n"
            "        return self.layer(self.backbone(x))\n    def configure_optimizers(self):\n"
            "        return torch.optim.SGD(self.layer.parameters(), lr=self.lr)\n"),
    Program("lr-finder-train-loader", "lightning==2.5.2 pytorch-lightning==2.4.0 lightning==2.1.4",
            "pl.Trainer(**QUIET, max_epochs=3, callbacks=[LearningRateFinder(num_training_steps=20), "
            "EarlyStopping('val_loss')]).fit(Net(), DataLoader(Big(), 4))",
            "class Big(Numbers):\n    def __len__(self):\n        return 96\n"),
    Program("plateau-waits-for-validation", "lightning==2.2.5 pytorch-lightning==2.6.1",
            "pl.Trainer(**QUIET, max_epochs=3, check_val_every_n_epoch=2, enable_checkpointing=False, "
            "num_sanity_val_steps=0).fit(Plateau())",
            "class Plateau(Net):\n    def configure_optimizers(self):\n        optimizer = super().configure_optimizers()\n"
            "        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
            "        return {'optimizer': optimizer, 'lr_scheduler': {'scheduler': scheduler, 'monitor': 'val_loss'}}\n"),
    Program("fit-on-weights-alone", "lightning==2.3.3 pytorch-lightning==2.0.9",
            "trainer = pl.Trainer(**QUIET, max_epochs=1)\n    trainer.fit(Net())\n"
            "    trainer.save_checkpoint('weights.ckpt', weights_only=True)\n"
            "    pl.Trainer(**QUIET, max_epochs=2).fit(Net(), ckpt_path='weights.ckpt')"),
    Program("interval-without-validation", "lightning==2.5.5 pytorch-lightning==2.1.3",
            "pl.Trainer(**QUIET, max_epochs=1, limit_val_batches=0, val_check_interval=100).fit(Net())"),
    Program("manual-optimization-mapping", "lightning==2.5.2 pytorch-lightning==2.3.1",
            "pl.Trainer(**QUIET, max_epochs=1).fit(Manual())",
            "from collections import UserDict\nclass Manual(Net):\n    def __init__(self):\n        super().__init__()\n"
            "        self.automatic_optimization = False\n    def training_step(self, batch, batch_idx):\n"
            "        return UserDict(loss=self(batch).mean())\n"),
    Program("spike-detection-state", "lightning==2.3.3",
            "spikes = Spikes(mode='min', window=3, warmup=1)\n    spikes.load_state_dict(spikes.state_dict())",
            "from lightning.fabric.utilities.spike import SpikeDetection as Spikes\n"),
    Program("dataclass-hparams", "lightning==2.5.0 pytorch-lightning==2.3.1", "Data(batch_size=4)",
            "from dataclasses import dataclass, field\n@dataclass\nclass Data(pl.LightningDataModule):\n"
            "    batch_size: int = 1\n    total: int = field(init=False)\n    def __post_init__(self):\n"
            "        super().__init__()\n        self.save_hyperparameters()\n"),
    Program("hparams-that-yaml-refuses", "lightning==2.2.5 pytorch-lightning==2.1.3",
            "pl.Trainer(**{**QUIET, 'logger': CSVLogger('logs')}, max_epochs=1).fit(Typed())",
            "import torchmetrics\nclass Typed(Net):\n    def __init__(self, metric=torchmetrics.MeanMetric()):\n        super().__init__()\n"
            "        self.save_hyperparameters()\n"),
    Program("own-checkpoint-load or trusted-checkpoint-load", "lightning==2.6.6 pytorch-lightning==2.3.1 lightning==2.2.5",
            "pl.Trainer(**QUIET, max_epochs=1, default_root_dir='runs').fit(Own())\n"
            "    trainer = pl.Trainer(**QUIET, max_epochs=1)\n    trainer.fit(Own())\n"
            "    trainer.test(Own(), ckpt_path='best')",
            "class Options:\n    width = 3\nclass Own(Net):\n    def __init__(self, options=Options()):\n"
            "        super().__init__()\n        self.save_hyperparameters()\n"),
    Program("tuner-temporary-checkpoint", "lightning==2.3.3 pytorch-lightning==2.6.1",
            "from {P}.tuner import Tuner\n    Tuner(pl.Trainer(**QUIET, max_epochs=1)).lr_find(Own(), num_training=5)",
            "class Options:\n    width = 3\nclass Own(Net):\n    def __init__(self, options=Options()):\n"
            "        super().__init__()\n        self.save_hyperparameters()\n"),
    Program("two-packages-of-lightning", "lightning==2.2.5+pytorch-lightning==2.2.5",
            "import lightning.pytorch as L\n    L.Trainer(**QUIET, max_epochs=1).fit(Other())",
            "import pytorch_lightning\nclass Other(pytorch_lightning.LightningModule):\n    pass\n"),
    Program("plain-state-dict", "lightning==2.2.5 pytorch-lightning==2.6.1",
            "torch.save(Net().state_dict(), 'model.ckpt')\n    Net.load_from_checkpoint('model.ckpt')"),
    Program("numpy-2-without-inf", "pytorch-lightning==2.0.9 pytorch-lightning==1.9.5",
            "EarlyStopping('val_loss')"),
    Program("Trainer(gpus=)", "lightning==2.2.5 pytorch-lightning==2.6.1", "pl.Trainer(gpus=1, max_epochs=1)"),
    Program("Trainer(resume_from_checkpoint=)", "pytorch-lightning==2.4.0",
            "pl.Trainer(resume_from_checkpoint='last.ckpt')"),
    Program("def training_epoch_end", "lightning==2.1.4", "pl.Trainer(**QUIET, max_epochs=1).fit(Old())",
            "class Old(Net):\n    def training_epoch_end(self, outputs):\n        pass\n"),
    Program("import utilities.distributed", "pytorch-lightning==2.4.0",
            "from {P}.utilities.distributed import rank_zero_only"),
    Program("async-checkpoint-reuse", "lightning==2.5.2 pytorch-lightning==2.0.9",
            "from {P}.plugins.io import AsyncCheckpointIO\n"
            "    trainer = pl.Trainer(**QUIET, max_epochs=1, plugins=AsyncCheckpointIO())\n    trainer.validate(Net())\n"
            "    trainer.fit(Net())"),
    Program("compiled-names", "lightning==2.2.5 pytorch-lightning==2.4.0",
            "model = Net()\n    model.layer = torch.compile(model.layer)\n    trainer = pl.Trainer(**QUIET, max_steps=1)\n"
            "    trainer.strategy.connect(model)\n    trainer.save_checkpoint('compiled.ckpt')\n"
            "    Net.load_from_checkpoint('compiled.ckpt')"),
    Program("-", "lightning==2.3.3 pytorch-lightning==2.1.3",
            "pl.Trainer(**QUIET).predict(Iterating(), return_predictions=False)",
            "class Iterating(Net):\n    def predict_step(self, dataloader_iter):\n        return self(next(dataloader_iter)[0])\n"),
    Program("checkpoint-without-parameters", "pytorch-lightning==2.0.9",
            "trainer = pl.Trainer(**QUIET, max_steps=1)\n    trainer.strategy.connect(Fixed(3))\n"
            "    trainer.save_checkpoint('fixed.ckpt')\n    Fixed.load_from_checkpoint('fixed.ckpt')",
            "class Fixed(pl.LightningModule):\n    def __init__(self, width):\n        super().__init__()\n"
            "        self.save_hyperparameters()\n"),
    Program("profiler-file-names", "lightning==2.5.0",
            "from {P}.profilers import AdvancedProfiler\n"
            "    pl.Trainer(**QUIET, max_epochs=1, profiler=AdvancedProfiler('p', dump_stats=True), "
            "callbacks=EarlyStopping('val/loss')).fit(Slash())",
            "class Slash(Net):\n    def validation_step(self, batch, batch_idx):\n        self.log('val/loss', 1.0)\n"),
    Program("rich-empty-sanity-check", "lightning==2.5.3",
            "pl.Trainer(**{**QUIET, 'enable_progress_bar': True}, max_epochs=1, callbacks=RichProgressBar()).fit(Empty())",
            "class Empty(Net):\n    def val_dataloader(self):\n        return []\n"),
    Program("logger-without-experiment", "pytorch-lightning==2.0.6",
            "pl.Trainer(**{**QUIET, 'logger': Mine()}, max_epochs=1).fit(Net())",
            "from {P}.loggers.logger import Logger\nclass Mine(Logger):\n    name = 'mine'\n    version = 0\n"
            "    def log_metrics(self, metrics, step=None):\n        pass\n    def log_hyperparams(self, *a, **k):\n        pass\n"),
    Program("logger-version-folder-names", "pytorch-lightning==2.0.9",
            "os.makedirs('logs/run/version_best')\n    CSVLogger('logs', 'run').experiment"),
    Program("dataloader-error-unmasked or -", "lightning==2.2.5 pytorch-lightning==2.4.0",
            "pl.Trainer(**QUIET, max_epochs=1).fit(Net(), DataLoader(Locked(), 4, num_workers=1, "
            "multiprocessing_context='spawn'))",
            "import threading\nclass Locked(Numbers):\n    def __init__(self):\n        self.lock = threading.Lock()\n"),
    Program("clipping-in-manual-optimization", "lightning==2.6.6",
            "pl.Trainer(**QUIET, max_epochs=1, gradient_clip_val=1.0).fit(Manual())",
            "class Manual(Net):\n    def __init__(self):\n        super().__init__()\n"
            "        self.automatic_optimization = False\n"),
    Program("log-of-a-dict", "lightning==2.6.6", "pl.Trainer(**QUIET, max_epochs=1).fit(Dict())",
            "class Dict(Net):\n    def training_step(self, batch, batch_idx):\n        self.log('loss', {'a': 1.0})\n"
            "        return self(batch).mean()\n"),
    Program("checkpoint-name-similar-metrics", "pytorch-lightning==2.0.2",
            "pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint('c', '{epoch}-{epoch_loss:.2f}')).fit(Net())"),
    Program("hyperparameters-made-in-method", "lightning==2.5.2",
            "pl.Trainer(**QUIET, max_steps=1).fit(Teacher(depth=2))",
            "class Student(Net):\n    def __init__(self, width):\n        super().__init__()\n        self.save_hyperparameters()\n"
            "class Teacher(Net):\n    def __init__(self, depth):\n        super().__init__()\n        self.save_hyperparameters()\n"
            "    def setup(self, stage):\n        super().setup(stage)\n        self.student = Student(width=4)\n"),
    Program("last-checkpoint-by-extension", "pytorch-lightning==2.1.0",
            "open('last.txt', 'w').write('x' * 100)\n"
            "    pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint('.', 'a', save_last=True)).fit(Net(), ckpt_path='last')"),
    Program("optimizer-closure-grad", "pytorch-lightning==2.0.6",
            "pl.Trainer(**QUIET, max_epochs=1).fit(Closing())",
            "class Bare(torch.optim.SGD):\n    @torch.no_grad()\n    def step(self, closure=None):\n        return closure()\n"
            "class Closing(Net):\n    def configure_optimizers(self):\n        return Bare(self.parameters(), lr=0.1)\n"),
    Program("mpi-without-library", "lightning==2.5.2",
            "import sys, types\n    sys.path.insert(0, '.')\n    os.makedirs('mpi4py')\n"
            "    open('mpi4py/__init__.py', 'w').close()\n    pl.Trainer(max_epochs=1)"),
    Program("neptune-logger-name", "lightning==2.6.6", "from lightning.pytorch.loggers import NeptuneLogger"),
    Program("monitored-metric-missing", "lightning==2.5.5 pytorch-lightning==2.0.9",
            "pl.Trainer(**QUIET, max_epochs=2, callbacks=Early('valid_loss')).fit(Net())",
            "import numpy\nnumpy.Inf = numpy.inf\nEarly = EarlyStopping\n"),
    Program("import-without-pkg-resources", "lightning==2.2.5 pytorch-lightning==2.0.9 pytorch-lightning==2.3.1", "", "# no pkg_resources\n"),
    Program("-", "lightning==2.2.5", "pl.Trainer(**QUIET, max_epochs=1).fit(Shapes())",
            "class Shapes(Net):\n    def forward(self, x):\n        return torch.nn.Linear(5, 2)(x)\n"),
    Program("-", "pytorch-lightning==2.6.1", "pl.Trainer(**QUIET, max_epochs=1).fit(Net(), DataLoader(Broken(), 4))",
            "class Broken(Numbers):\n    def __getitem__(self, index):\n        return {'a': 1}['b']\n"),
    Program("-", "lightning==2.6.6", "pl.Trainer(**QUIET, max_epochs=1).fit(Asking())",
            "class Asking(Net):\n    def setup(self, stage):\n        open('/data/images/index.csv')\n"),
    Program("-", "lightning==2.3.3", "pl.Trainer(**{**QUIET, 'accelerator': 'gpu'}, max_epochs=1)"),
    Program("-", "pytorch-lightning==2.1.3", "pl.Trainer(**QUIET, max_epochs=1).fit(Attribute())",
            "class Attribute(Net):\n    def on_train_start(self):\n        self.encoder.freeze()\n"),
    Program("-", "pytorch-lightning==2.0.9", "pl.Trainer(**QUIET, max_epochs=1).fit(Popping())",
            "class Popping(Net):\n    def on_train_batch_end(self, *args):\n        [].pop()\n"),
    Program("-", "pytorch-lightning==2.6.1", "pl.Trainer(**QUIET, max_epochs=1).fit(Typed())",
            "class Typed(Net):\n    def training_step(self, batch, batch_idx):\n        return self(batch.double()).mean()\n"),
)  # fmt: skip
