# ruff: noqa: E501
"""Small programs that fail on a release: the expected answer of `diagnose`, the releases, and the source.

``-`` means that it is not a known bug. {P} is the package that the program imports.
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
        expected: name of the expected record, or several alternatives joined by " or ".
        releases: releases on which it runs, such as ``lightning==2.2.5``.
        body: body of its function ``main``.
        classes: code above that function.
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

LATER = (
    Program("lr-finder-train-loader", "lightning==2.4.0",
            "trainer = pl.Trainer(**QUIET, max_epochs=1, enable_checkpointing=False, "
            "callbacks=LearningRateFinder(num_training_steps=3))\n    trainer.fit(Net())\n"
            "    print(trainer.callback_metrics['val_loss'])"),
    Program("lr-finder-train-loader", "pytorch-lightning==2.2.5",
            "trainer = pl.Trainer(**QUIET, max_epochs=1, callbacks=[LearningRateFinder(num_training_steps=3), "
            "ModelCheckpoint(monitor='val_loss')])\n    trainer.fit(Net())\n    trainer.test(ckpt_path='best')"),
    Program("lr-finder-train-loader", "lightning==2.5.2",
            "pl.Trainer(**QUIET, max_epochs=2, callbacks=[LearningRateFinder(num_training_steps=3), "
            "EarlyStopping('val_loss')]).fit(Net())"),
    Program("validation-after-short-epoch", "lightning==2.6.6",
            "trainer = pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint(monitor='val_loss'))\n"
            "    trainer.fit(Net(), DataLoader(Stream(), 4))\n    trainer.test(ckpt_path='best')",
            "class Stream(IterableDataset):\n    def __len__(self):\n        return 20\n"
            "    def __iter__(self):\n        return iter(torch.ones(16, 4))\n"),
    Program("validation-after-short-epoch", "pytorch-lightning==2.1.3",
            "trainer = pl.Trainer(**QUIET, max_epochs=1)\n    trainer.fit(Net(), DataLoader(Stream(), 4))\n"
            "    print(trainer.callback_metrics['val_loss'])",
            "class Stream(IterableDataset):\n    def __len__(self):\n        return 20\n"
            "    def __iter__(self):\n        return iter(torch.ones(16, 4))\n"),
    Program("fit-resets-should-stop", "pytorch-lightning==2.2.5",
            "trainer = pl.Trainer(**{**QUIET, 'logger': CSVLogger('logs')}, max_epochs=9, "
            "callbacks=EarlyStopping('val_loss', patience=1, min_delta=1e9))\n"
            "    trainer.fit(Net())\n    trainer.fit(Net())\n    print(trainer.callback_metrics['val_loss'])"),
    Program("interrupt-ends-all-ranks", "lightning==2.2.5",
            "trainer = pl.Trainer(**QUIET, max_epochs=3, callbacks=ModelCheckpoint(monitor='val_loss'))\n"
            "    trainer.fit(Interrupted())\n    trainer.test(ckpt_path='best')",
            "class Interrupted(Net):\n    def on_train_batch_end(self, *args):\n        raise KeyboardInterrupt\n"),
    Program("last-checkpoint-at-end", "pytorch-lightning==2.2.5",
            "pl.Trainer(**QUIET, max_epochs=2, check_val_every_n_epoch=10, callbacks=ModelCheckpoint('a', save_last=True))"
            ".fit(Net())\n    Net.load_from_checkpoint('a/last.ckpt')"),
    Program("checkpoint-after-validation", "lightning==2.3.3",
            "trainer = pl.Trainer(**QUIET, max_steps=4, val_check_interval=4, num_sanity_val_steps=0, "
            "callbacks=ModelCheckpoint(monitor='val_loss', every_n_train_steps=4))\n    trainer.fit(Net())\n"
            "    trainer.test(ckpt_path='best')"),
    Program("swa-infinite-epochs", "pytorch-lightning==2.4.0",
            "trainer = pl.Trainer(**QUIET, max_epochs=-1, max_steps=20, callbacks=[StochasticWeightAveraging(0.1), "
            "ModelCheckpoint(monitor='val_loss')])\n    trainer.fit(Normed())\n    trainer.test(ckpt_path='best')",
            "class Normed(Net):\n    def __init__(self):\n        super().__init__()\n"
            "        self.norm = torch.nn.BatchNorm1d(4)\n    def forward(self, x):\n"
            "        return self.layer(self.norm(x))\n"),
    Program("checkpoint-kept-on-resume", "pytorch-lightning==2.0.9 lightning==2.1.0",
            "pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint('a', 'first')).fit(Net())\n"
            "    trainer = pl.Trainer(**QUIET, max_epochs=3, callbacks=ModelCheckpoint('a', '{epoch}'))\n"
            "    trainer.fit(Net(), ckpt_path='a/first.ckpt')\n    trainer.test(Net(), ckpt_path='a/first.ckpt')",
            "import numpy\nnumpy.Inf = numpy.inf\n"),
    Program("remote-checkpoint-kept-on-resume", "lightning==2.6.6",
            "pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint('memory://runs/a', 'first')).fit(Net())\n"
            "    trainer = pl.Trainer(**QUIET, max_epochs=3, callbacks=ModelCheckpoint('memory://runs/b', '{epoch}'))\n"
            "    trainer.fit(Net(), ckpt_path='memory://runs/a/first.ckpt')\n"
            "    trainer.test(Net(), ckpt_path='memory://runs/a/first.ckpt')"),
    Program("checkpoint-overwritten", "pytorch-lightning==2.0.9",
            "pl.Trainer(**QUIET, max_epochs=2, callbacks=ModelCheckpoint('a', 'best')).fit(Net())\n"
            "    Net.load_from_checkpoint('a/best.ckpt')",
            "import numpy\nnumpy.Inf = numpy.inf\n"),
    Program("csv-logger-flush", "pytorch-lightning==2.0.2",
            "logger = Logger('logs')\n    for step in range(150):\n        logger.log_metrics({'loss': step})\n"
            "    open(os.path.join(logger.log_dir, 'metrics.csv'))",
            "from lightning_fabric.loggers import CSVLogger as Logger\n"),
    Program("warn-empty-loader-in-cycle", "lightning==2.2.5",
            "loaders = CombinedLoader({'a': DataLoader(Numbers(), 4), 'b': DataLoader([], 4)}, 'max_size_cycle')\n"
            "    pl.Trainer(**QUIET, max_epochs=2, callbacks=EarlyStopping('loss'), limit_val_batches=0).fit(Pair(), loaders)",
            "from {P}.utilities import CombinedLoader\nclass Pair(Net):\n    def training_step(self, batch, batch_idx):\n"
            "        self.log('loss', 1.0)\n        return self(batch['a']).mean()\n"),
    Program("resume-after-last-batch", "lightning==2.6.6",
            "pl.Trainer(**QUIET, max_steps=4, callbacks=ModelCheckpoint('a', 'x', save_last=True)).fit(Net())\n"
            "    pl.Trainer(**QUIET, max_steps=12, callbacks=EarlyStopping('val_loss', check_on_train_epoch_end=True))"
            ".fit(Net(), ckpt_path='a/last.ckpt')"),
    Program("checkpoint-permission-error", "lightning==2.6.6 lightning==2.5.2",
            "trainer = pl.Trainer(**QUIET, max_epochs=1, callbacks=ModelCheckpoint('guarded://run', 'x', "
            "monitor='val_loss'))\n    trainer.fit(Net())\n    trainer.test(ckpt_path='best')",
            "import fsspec\nfrom fsspec.implementations.memory import MemoryFileSystem\n"
            "class Guarded(MemoryFileSystem):\n    protocol, store, pseudo_dirs = 'guarded', {}, ['']\n"
            "    def _open(self, path, mode='rb', **options):\n        if 'w' in mode:\n"
            "            raise PermissionError(13, 'Access Denied', path)\n"
            "        return super()._open(path, mode, **options)\n"
            "fsspec.register_implementation('guarded', Guarded, clobber=True)\n"),
    Program("cli-linked-arguments", "lightning==2.5.0",
            "cli = Linking(Wide, Data, args=['fit', '--trainer.accelerator=cpu', '--trainer.max_epochs=1', "
            "'--trainer.logger=false'])\n    Wide.load_from_checkpoint(cli.trainer.checkpoint_callback.best_model_path)",
            "from {P}.cli import LightningCLI\nclass Wide(Net):\n    def __init__(self, classes: int):\n"
            "        super().__init__()\n        self.save_hyperparameters()\n"
            "        self.head = torch.nn.Linear(2, classes)\nclass Data(pl.LightningDataModule):\n"
            "    def __init__(self):\n        super().__init__()\n        self.classes = 7\n"
            "    def train_dataloader(self):\n        return DataLoader(Numbers(), 4)\n"
            "    val_dataloader = train_dataloader\nclass Linking(LightningCLI):\n"
            "    def add_arguments_to_parser(self, parser):\n"
            "        parser.link_arguments('data.classes', 'model.classes', apply_on='instantiate')\n"),
    Program("tuner-cleanup-on-error", "lightning==2.6.6 pytorch-lightning==2.4.0",
            "from {P}.tuner import Tuner\n    trainer = pl.Trainer(**QUIET, max_epochs=1)\n    try:\n"
            "        Tuner(trainer).lr_find(Failing())\n    except ArithmeticError:\n        trainer.fit(Net())",
            "class Failing(Net):\n    def training_step(self, batch, batch_idx):\n        raise ArithmeticError\n"),
    Program("sequential-loader-workers", "pytorch-lightning==2.0.1",
            "import resource\n    resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))\n"
            "    pl.Trainer(**QUIET).validate(Many(), [DataLoader(Numbers(), 4, num_workers=4) for _ in range(10)])",
            "class Many(Net):\n    def validation_step(self, batch, batch_idx, dataloader_idx=0):\n        pass\n"),
    Program("last-checkpoint-link-to-itself", "lightning==2.3.3",
            "pl.Trainer(**QUIET, max_epochs=2, callbacks=ModelCheckpoint('a', '{epoch}', save_last='link', "
            "every_n_epochs=3)).fit(Net())\n    pl.Trainer(**QUIET, max_epochs=4).fit(Net(), ckpt_path='a/last.ckpt')"),
    Program("default-dtype-restored", "pytorch-lightning==2.0.9",
            "try:\n        pl.Trainer(**QUIET, max_epochs=1, precision='64-true').fit(Failing())\n"
            "    except ArithmeticError:\n        traceback.print_exc()\n"
            "    torch.nn.Linear(4, 2)(torch.from_numpy(numpy.ones((1, 4), 'float32')))",
            "import numpy, traceback\nnumpy.Inf = numpy.inf\nclass Failing(Net):\n"
            "    def training_step(self, batch, batch_idx):\n        raise ArithmeticError\n"),
)  # fmt: skip
"""Bugs that say nothing, and end in another error some lines later: the log is kept whole, warnings and all."""

PLAIN = (
    Program("numpy-2-without-inf", "pytorch-lightning==2.0.9", "EarlyStopping('val_loss')",
            "import numpy\ndel numpy.Inf  # which torchmetrics of today puts back\n"),
    Program("numpy-2-without-inf", "pytorch-lightning==1.9.5", "ModelCheckpoint(monitor='val_loss')",
            "import numpy\ndel numpy.Inf  # which torchmetrics of today puts back\n"),
    Program("profiler-nested-actions", "lightning==2.5.2 pytorch-lightning==2.2.5", "", "# python 3.12\n"),
    Program("torch-without-libuv", "lightning==2.5.5 pytorch-lightning==2.4.0",
            "import sys\n    sys.modules['torch.distributed.rendezvous'].TCPStore = of_a_wheel_for_windows\n"
            "    os.environ.update(MASTER_PORT='29511', LOCAL_RANK='0')\n    pl.Trainer(**{**QUIET, 'devices': 2}, strategy='ddp', max_epochs=1).fit(Net())",
            "# windows\ndef of_a_wheel_for_windows(*args, **kwargs):\n"
            "    raise RuntimeError('use_libuv was requested but PyTorch was build without libuv support')\n"),
    Program("mixed-releases", "lightning_fabric@2.0.9+pytorch-lightning==2.5.5", "", "# fresh\n"),
    Program("mixed-releases", "lightning_fabric@2.5.2+pytorch-lightning==1.9.5", "", "# fresh\n"),
    Program("plain-state-dict", "lightning==2.4.0 pytorch-lightning==2.0.9",
            "torch.save(Net().state_dict(), 'model.ckpt')\n    Net.load_from_checkpoint('model.ckpt')"),
    Program("old-lightning-utilities", "lightning-utilities==0.8.0+lightning==2.2.5", "", "# no pkg_resources\n"),
    Program("old-lightning-utilities", "lightning-utilities==0.8.0+pytorch-lightning==2.0.9", "", "# no pkg_resources\n"),
    Program("two-packages-of-lightning", "lightning==2.5.2+pytorch-lightning==2.5.2",
            "import lightning.pytorch as L\n    L.Trainer(**QUIET, max_epochs=1).fit(Other())",
            "import pytorch_lightning\nclass Other(pytorch_lightning.LightningModule):\n    pass\n"),
    Program("two-packages-of-lightning", "pytorch-lightning==2.3.3+lightning==2.3.3",
            "import lightning.pytorch as L\n    pl.Trainer(**QUIET, max_epochs=1).fit(Other())",
            "import lightning.pytorch\nclass Other(lightning.pytorch.LightningModule):\n    pass\n"),
)  # fmt: skip
"""The most common errors that need no patch. Each is tested with its traceback and with its last line."""
