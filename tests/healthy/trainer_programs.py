# ruff: noqa: E501  (what is written here are lines of programs)
"""The source of a program for Lightning's Trainer, from its spec (see ``programs.py``)."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from tests.healthy.programs import Spec, value_of

HEAD = """\
from tests.healthy import watch  # in the arm that has the shim, it imports lightning_patches

import dataclasses, glob, os, sys
from datetime import timedelta
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, WeightedRandomSampler
import PL as pl
from PL import callbacks as cb
"""

DATA = """
class Numbers(Dataset):
    def __init__(self, length, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(length, 8, generator=generator)
        self.y = torch.randn(length, 1, generator=generator)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, index):{raising}
        return {item}
"""

STREAM = """
class Stream(IterableDataset):
    def __init__(self, data):
        self.data = data{length}
    def __iter__(self):
        for index in range(len(self.data)):
            yield self.data[index]
"""


def write(spec: Spec) -> dict[str, str]:
    """The scripts of the program by name."""
    get = value_of(spec)
    head = HEAD
    files = {}
    if get("keeps") == "module in hyperparameters":
        files["parts.py"] = "from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n"
        head += "import parts\n"
    files["train.py"] = "\n".join(
        [head, _data(get), _model(get), _callbacks(get), _trainer(get), _main(get), 'if __name__ == "__main__":']
        + ["    watch.run(main)", ""]
    )
    if get("resume") == "in a new process":
        files["resume.py"] = textwrap.dedent("""\
            from train import *

            def main():
                FAILS.clear()
                for path in sorted(glob.glob("**/*.ckpt", recursive=True)):
                    watch.saw("from", path)
                    try:
                        {fit}
                    except BaseException as error:
                        watch.saw("raised", error)

            if __name__ == "__main__":
                watch.run(main)
            """).format(fit=_resumed(get))
    if get("then") == "load":
        files["evaluate.py"] = textwrap.dedent("""\
            from train import *

            def main():
                for path in sorted(glob.glob("**/*.ckpt", recursive=True)):
                    try:
                        model = Model.load_from_checkpoint(path, map_location="cpu")
                        watch.saw(path, [model, dict(model.hparams)])
                    except Exception as error:
                        watch.saw("raised", error)

            if __name__ == "__main__":
                watch.run(main)
            """)
        if get("keeps") == "module in hyperparameters":  # who evaluates need not have imported what the training used
            files["model.py"] = (
                files.pop("train.py")
                .replace("import parts\n", "")
                .replace("Model(**MODEL)", "Model(**made())")
                .replace('if __name__ == "__main__":\n    watch.run(main)\n', "")
            )
            files["train.py"] = textwrap.dedent("""\
                import parts
                import model
                from model import *

                model.MODEL["head"] = parts.Net(8, 1)

                if __name__ == "__main__":
                    watch.run(main)
                """)
            files["evaluate.py"] = files["evaluate.py"].replace("from train import *", "from model import *")
    if get("cli"):
        files["train.py"] = textwrap.dedent("""\
            from model import *
            from PL.cli import LightningCLI

            DEFAULTS = dict(accelerator="cpu", devices=1, max_epochs=2, logger=False, enable_progress_bar=False,
                            enable_model_summary=False, default_root_dir="run", callbacks=[watch.Watch()])

            def main():
                given = ["fit", "--model.head=parts.Net", "--model.head.in_features=8", "--model.head.out_features=1"]
                LightningCLI(Model, Data, save_config_callback=None, seed_everything_default=1,
                             trainer_defaults=DEFAULTS, args=given)

            if __name__ == "__main__":
                watch.run(main)
            """)
    return files


# ------------------------------------------------------------------------------------------------------------------ data


def _data(get: Any) -> str:
    item = {
        "tuple": "self.x[index], self.y[index]",
        "dict": '{"x": self.x[index], "y": self.y[index]}',
        "custom": "(self.x[index], self.y[index])",
    }[get("batch_type")]
    raising = ""
    if get("raises") and get("raises_in") == "data":
        raising = f'\n        if FAILS and index == {get("raises_at") + 2}:\n            raise {get("raises")}("on purpose, data")'
    text = DATA.format(item=item, raising=raising)
    if "iterable" in get("data") or get("val_data") == "iterable":
        length = (
            "\n    def __len__(self):\n        return len(self.data)" if get("data") == "iterable with length" else ""
        )
        text += STREAM.format(length=length)
    if get("batch_type") == "custom":
        text += textwrap.dedent("""
            class Batch:
                def __init__(self, items):
                    self.x = torch.stack([x for x, _ in items])
                    self.y = torch.stack([y for _, y in items])
                def to(self, *arguments, **named):
                    self.x, self.y = self.x.to(*arguments, **named), self.y.to(*arguments, **named)
                    return self
            """)
    if get("data") == "any iterable":
        text += textwrap.dedent("""
            class Batches:
                def __init__(self, loader):
                    self.loader = loader
                def __len__(self):
                    return len(self.loader)
                def __iter__(self):
                    return iter(self.loader)
            """)
    if get("sampler") == "own":
        text += textwrap.dedent("""
            class Backwards(torch.utils.data.Sampler):
                def __init__(self, data):
                    self.data = data
                def __len__(self):
                    return len(self.data)
                def __iter__(self):
                    return iter(range(len(self.data) - 1, -1, -1))
                def set_epoch(self, epoch):
                    watch.saw("set_epoch", epoch)
            """)
    text += "\nFAILS = {True}\n\n\ndef train_loader(size=4):\n" + textwrap.indent(_train_loader(get), "    ")
    text += "\n\ndef val_loaders(size=4):\n" + textwrap.indent(_val_loaders(get), "    ")
    return text


def _collate(get: Any) -> str:
    return ", collate_fn=Batch" if get("batch_type") == "custom" else ""


def _train_loader(get: Any) -> str:
    length = f"{get('batches')} * 4" + (" - 2" if get("short") else "")
    collate = _collate(get)
    more = collate + (", drop_last=True" if get("drop_last") else "") + (", shuffle=True" if get("shuffle") else "")
    data = get("data")
    if get("data") in ("map", "workers"):
        if get("sampler") == "weighted":
            more += ", sampler=WeightedRandomSampler([1.0] * len(data), len(data))"
        elif get("sampler") == "own":
            more += ", sampler=Backwards(data)"
        elif get("sampler") == "own batches":
            text = f"data = Numbers({length})\n"
            return (
                text
                + f"return DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), size, False){collate})\n"
            )
    if data == "workers":
        more += ", num_workers=1"
    if data in ("map", "workers"):
        return f"data = Numbers({length})\nreturn DataLoader(data, batch_size=size{more})\n"
    if data.startswith("iterable"):
        return f"return DataLoader(Stream(Numbers({length})), batch_size=size{collate})\n"
    plain = f"DataLoader(Numbers({length}), batch_size=size{collate})"
    other = f"DataLoader(Numbers(6, seed=5), batch_size=2{collate})"
    if data == "any iterable":
        return f"return Batches({plain})\n"
    if data == "dict":
        return f'return {{"batch": {plain}}}\n'
    if data == "two":
        return f"return [{plain}, {other}]\n"
    return (
        "from PL.utilities import CombinedLoader\n"
        f'return CombinedLoader({{"batch": {plain}, "other": {other}}}, mode="{data if data == "min_size" else "max_size_cycle"}")\n'
    )


def _val_loaders(get: Any) -> str:
    collate = _collate(get)
    data = {"map": "Numbers(12, 1)", "iterable": "Stream(Numbers(12, 1))", "empty": "[]", "short": "Numbers(3, 1)"}
    first = f"DataLoader({data[get('val_data')]}, batch_size=size{collate})"
    if get("val_data") == "empty":
        first = f"DataLoader(Numbers(0), batch_size=size{collate})"
    if get("val_loaders") == 0:
        return "return None\n"
    if get("val_loaders") == 1:
        return f"return {first}\n"
    return f"return [{first}, DataLoader(Numbers(6, 2), batch_size=size{collate})]\n"


# ----------------------------------------------------------------------------------------------------------------- module


def _model(get: Any) -> str:
    base = "watch.Hooks, pl.LightningModule" if get("hooks") else "pl.LightningModule"
    if get("by") == "module":
        head = "train_dataloader = lambda self: train_loader(self.batch_size)\n"
        if get("val_loaders"):
            head += "val_dataloader = lambda self: val_loaders()\n"
    else:
        head = ""
    methods = [head, _init(get), _forward(get), _training_step(get), _evaluation(get), _optimizers(get)]
    methods += _hooks(get)
    text = f"\nclass Model({base}):\n" + textwrap.indent("\n".join(m for m in methods if m), "    ")
    if get("batch_type") == "custom" or get("overrides") == "dataloader_iter":  # whose size Lightning cannot know
        text = re.sub(r"(self\.log(?:_dict)?\((?!.*batch_size).*)\)(?=$| if )", r"\1, batch_size=4)", text, flags=re.M)
    if get("keeps") == "dataclass":
        text = "\n@dataclasses.dataclass\nclass Settings:\n    width: int = 8\n    rate: float = 0.1\n\n" + text
    arguments = {"hyperparameters": "dict(width=8, rate=0.1)", "dataclass": "dict(settings=Settings())"}
    arguments["module in hyperparameters"] = "dict(head=parts.Net(8, 1))"
    text += f"\n\nMODEL = {arguments.get(get('keeps'), '{}')}\n"
    if get("keeps") == "module in hyperparameters" and get("then") == "load":
        text = text.replace("MODEL = dict(head=parts.Net(8, 1))", "MODEL = {}\nmade = lambda: MODEL")
    if get("by") == "datamodule":
        hooks = "watch.Hooks, " if False else ""
        text += textwrap.dedent(f"""
            class Data({hooks}pl.LightningDataModule):
                def __init__(self):
                    super().__init__()
                    self.batch_size = 4
                def setup(self, stage):
                    watch.saw("datamodule setup", stage)
                def prepare_data(self):
                    watch.saw("datamodule prepare_data", True)
                def teardown(self, stage):
                    watch.saw("datamodule teardown", stage)
                def state_dict(self):
                    return {{"kept": 3}}
                def load_state_dict(self, state):
                    watch.saw("datamodule state", state)
                def train_dataloader(self):
                    watch.saw("datamodule train_dataloader", self.trainer.current_epoch)
                    return train_loader(self.batch_size)
            """)
        if get("val_loaders"):
            text += "    def val_dataloader(self):\n        return val_loaders()\n"
    return text


def _init(get: Any) -> str:
    signature = {
        "hyperparameters": ", width=8, rate=0.1",
        "dataclass": ", settings=None",
        "module in hyperparameters": ", head: nn.Module = None",
    }
    lines = [f"def __init__(self{signature.get(get('keeps'), '')}):", "    super().__init__()"]
    if get("keeps") in signature:
        lines.append("    self.save_hyperparameters()")
    lines += ["    torch.manual_seed(0)", "    self.lr, self.batch_size = 0.1, 4"]
    head = "nn.Linear(8, 1)" if get("keeps") != "module in hyperparameters" else "head or nn.Linear(8, 1)"
    parts = ["nn.Linear(8, 8)"] + (["nn.BatchNorm1d(8)"] if get("batch_norm") else []) + ["nn.ReLU()"]
    parts += ["nn.Dropout(0.2)"] if get("dropout") else []
    net = f"nn.Sequential({', '.join([*parts, head])})"
    if get("overrides") == "configure_model":
        lines.append("    self.net = None")
        lines = [
            *lines,
            *_extra(get),
            "",
            "def configure_model(self):",
            "    if self.net is None:",
            f"        self.net = {net}",
        ]
        return "\n".join(lines)
    lines.append(f"    self.net = {net}")
    return "\n".join([*lines, *_extra(get)])


def _extra(get: Any) -> list[str]:
    lines = []
    if get("manual"):
        lines.append("    self.automatic_optimization = False")
    if get("manual") == "gan":
        lines.append("    self.critic = nn.Linear(1, 1)")
    if get("unused") != False:  # noqa: E712
        lines.append("    self.spare = nn.Linear(3, 3)")
    if get("frozen"):
        lines.append("    self.scale = nn.Linear(8, 8).requires_grad_(False).eval()")
    if get("keeps") == "torchmetric" or get("log_also") == "metric" or get("log_val") == "metric":
        lines += [
            "    from torchmetrics import MeanSquaredError",
            "    self.error, self.val_error = MeanSquaredError(), MeanSquaredError()",
        ]
    if get("compiled") == "net":
        lines.append('    self.net = torch.compile(self.net, backend="eager")')
    if get("ema") == "in validation":
        lines.append("    self.average = {n: p.detach().clone() for n, p in self.net.named_parameters()}")
    return lines


def _forward(get: Any) -> str:
    x = "batch.x" if get("batch_type") == "custom" else 'batch["x"]' if get("batch_type") == "dict" else "batch[0]"
    y = x.replace("x", "y").replace("batch[0]", "batch[1]")
    outer = {"dict": 'batch = batch["batch"]', "two": "batch = batch[0]", "max_size": 'batch = batch["batch"]'}
    outer["min_size"] = outer["dict"]
    unwrap = (
        ""
        if get("data") not in outer
        else "    if training:\n        " + outer[get("data")].replace("\n", "\n    ") + "\n"
    )
    scaled = "self.scale(x)" if get("frozen") else "x"
    return textwrap.dedent("""\
        def forward(self, x):
            return self.net({scaled})

        def loss(self, batch, training=False):
        {unwrap}    x, y = {x}, {y}
            {cast}return nn.functional.mse_loss(self(x), y)
        """).format(scaled=scaled, unwrap=textwrap.indent(unwrap, ""), x=x, y=y, cast="")


LOG_ALSO = {
    "int": 'self.log("also", batch_idx)',
    "large int": 'self.log("also", 2**24 + 1 + batch_idx, on_step=True, on_epoch=True, reduce_fx="max")',
    "float": 'self.log("also", 0.1 + batch_idx, on_step=True, on_epoch=True)',
    "bool": 'self.log("also", batch_idx % 2 == 0)',
    "double": 'self.log("also", torch.tensor(0.1, dtype=torch.float64) * (batch_idx + 1), on_step=True, on_epoch=True)',
    "half": 'self.log("also", loss.detach().half(), on_step=True, on_epoch=True)',
    "dict": 'self.log_dict({"a": loss.detach(), "b": batch_idx + 0.5}, on_step=False, on_epoch=True)',
    "metric": 'self.error(torch.ones(2) * batch_idx, torch.zeros(2))\nself.log("also", self.error, on_step=True, on_epoch=True)',
    "max": 'self.log("also", loss.detach(), on_step=False, on_epoch=True, reduce_fx="max")',
    "min": 'self.log("also", loss.detach(), on_step=True, on_epoch=True, reduce_fx=torch.min)',
    "sum": 'self.log("also", loss.detach(), on_epoch=True, reduce_fx="sum")',
    "own name": 'self.log("group/also", loss.detach(), on_step=True, on_epoch=True)',
    "batch_size": 'self.log("also", loss.detach(), on_epoch=True, batch_size=batch_idx + 1)',
    "prog_bar": 'self.log("also", loss.detach(), prog_bar=True)',
    "without logger": 'self.log("also", loss.detach(), logger=False, on_epoch=True)',
    "gradient": 'self.log("also", loss, on_step=True, on_epoch=True, enable_graph=True)',
    "nan": 'self.log("also", float("nan") if batch_idx == 1 else 1.0, on_epoch=True)',
    "int tensor": 'self.log("also", torch.tensor(batch_idx), on_step=True, on_epoch=True)',
    "rank zero": 'self.log("also", loss.detach(), rank_zero_only=True)',
}
LOG_TRAIN = {
    "step": 'self.log("train_loss", loss)',
    "epoch": 'self.log("train_loss", loss, on_step=False, on_epoch=True)',
    "both": 'self.log("train_loss", loss, on_step=True, on_epoch=True)',
    "no": "",
}


def _training_step(get: Any) -> str:
    lines = []
    if get("overrides") == "dataloader_iter":
        lines += [
            "def training_step(self, dataloader_iter):",
            "    batch, batch_idx, *_ = next(dataloader_iter)" if True else "",
        ]
        lines[1] = (
            "    got = next(dataloader_iter)\n    batch, batch_idx = (got[0], got[1]) if isinstance(got, tuple) and len(got) == 3 else (got, 0)"
        )
    elif get("overrides") == "optional batch_idx":
        lines += ["def training_step(self, batch):", "    batch_idx = self.trainer.global_step"]
    else:
        lines += ["def training_step(self, batch, batch_idx):"]
    lines += _raise(get, "training_step")
    manual = get("manual")
    backward = "self.manual_backward(loss)"
    if not manual:
        lines.append("    loss = self.loss(batch, training=True)")
    elif manual == "plain":
        lines += [
            "    optimizer = self.optimizers()",
            "    loss = self.loss(batch, training=True)",
            "    optimizer.zero_grad()",
        ]
        lines += [
            f"    {backward}",
            "    self.clip_gradients(optimizer, gradient_clip_val=0.5)",
            "    optimizer.step()",
        ]
    elif manual == "closure":
        lines += [
            "    optimizer = self.optimizers()",
            "    def closure():",
            "        loss = self.loss(batch, training=True)",
        ]
        lines += ["        optimizer.zero_grad()", f"        {backward}", "        return loss"]
        lines += ["    optimizer.step(closure=closure)", "    loss = self.loss(batch, training=True).detach()"]
    elif manual == "accumulating":
        lines += [
            "    optimizer = self.optimizers()",
            "    loss = self.loss(batch, training=True) / 2",
            f"    {backward}",
        ]
        lines += ["    if (batch_idx + 1) % 2 == 0:", "        optimizer.step()", "        optimizer.zero_grad()"]
    elif manual == "with schedulers":
        lines += [
            "    optimizer, scheduler = self.optimizers(), self.lr_schedulers()",
            "    loss = self.loss(batch, training=True)",
        ]
        lines += [
            "    optimizer.zero_grad()",
            f"    {backward}",
            "    optimizer.step()",
            "    if self.trainer.is_last_batch:",
        ]
        lines += ["        scheduler.step()"]
    elif manual == "two backwards":
        lines += ["    optimizer = self.optimizers()", "    optimizer.zero_grad()", "    for part in range(2):"]
        lines += ["        loss = self.loss(batch, training=True)", f"        {backward}", "    optimizer.step()"]
    else:
        lines += [
            "    first, second = self.optimizers()",
            "    self.toggle_optimizer(first)",
            "    loss = self.loss(batch, training=True)",
            "    first.zero_grad()",
            f"    {backward}",
            "    first.step()",
            "    self.untoggle_optimizer(first)",
            "    self.toggle_optimizer(second)",
            "    second.zero_grad()",
            "    self.manual_backward((self.critic(loss.detach().reshape(1, 1)) ** 2).mean())",
            "    second.step()",
            "    self.untoggle_optimizer(second)",
        ]
    if LOG_TRAIN[get("log_train")]:
        lines.append("    " + LOG_TRAIN[get("log_train")])
    if get("log_also"):
        lines += textwrap.indent(LOG_ALSO[get("log_also")], "    ").splitlines()
    if get("rank_only") == "logging":
        lines.append(
            '    if self.trainer.is_global_zero:\n        self.log("only_zero", loss.detach(), rank_zero_only=True)'
        )
    if get("rank_only") == "diagnostics":
        lines.append(
            "    if self.trainer.is_global_zero:\n        watch.saw('gap', self.loss(batch, training=True).detach())"
        )
    if get("rank_only") == "backward" and not manual:
        lines += ["    if self.trainer.is_global_zero:", "        x = torch.ones(1, 8, requires_grad=True)"]
        lines += [
            "        watch.saw('saliency', torch.autograd.grad(self.net(x.to(next(self.net.parameters()).dtype)).sum(), x)[0])"
        ]
    lines.append('    watch.note("saw", f"training_step loss {watch.shown(loss)}")')
    if manual:
        lines.append("    return loss.detach()" if get("keeps") else "")
    elif get("returns") == "dict":
        lines.append('    return {"loss": loss, "kept": batch_idx}')
    elif get("returns") == "sometimes none":
        lines.append("    return None if batch_idx % 3 == 1 else loss")
    else:
        lines.append("    return loss")
    return "\n".join(lines) + "\n"


def _evaluation(get: Any) -> str:
    index = ", dataloader_idx=0" if get("val_loaders") == 2 else ""
    log = {
        "plain": 'self.log("val_loss", loss)',
        "both": 'self.log("val_loss", loss, on_step=True, on_epoch=True)',
        "without index": 'self.log("val_loss", loss, add_dataloader_idx=False)'
        if not index
        else 'self.log(f"val_loss" if dataloader_idx == 0 else "other", loss, add_dataloader_idx=False)',
        "sync": 'self.log("val_loss", loss, sync_dist=True)',
        "metric": 'self.val_error.update(loss.detach().reshape(1).float(), torch.ones(1))\nself.log("val_loss", self.val_error, add_dataloader_idx=False)',
        "max": 'self.log("val_loss", loss, reduce_fx="max")',
        "no": "",
    }[get("log_val")]
    if get("monitor") == "val_loss" or get("stops") in ("early", "early patient") or get("scheduler") == "plateau val":
        if index and get("log_val") not in ("without index", "metric"):
            log = 'self.log("val_loss", loss, add_dataloader_idx=False) if dataloader_idx == 0 else None'
        elif not log:
            log = 'self.log("val_loss", loss)'
    lines = [f"def validation_step(self, batch, batch_idx{index}):", *_raise(get, "validation_step")]
    lines += ["    loss = self.loss(batch)", *textwrap.indent(log, "    ").splitlines()]
    lines += ['    watch.note("saw", f"validation_step loss {watch.shown(loss)}")', ""]
    if not get("val_loaders"):
        lines = []
    lines += [f"def test_step(self, batch, batch_idx{index}):", '    self.log("test_loss", self.loss(batch))', ""]
    lines += [f"def predict_step(self, batch, batch_idx{index}):", "    return self.loss(batch)"]
    return "\n".join(lines) + "\n"


def _optimizers(get: Any) -> str:
    if get("optimizer") == "none":
        return "def configure_optimizers(self):\n    return None\n"
    parameters = "self.net.parameters()"
    if get("groups") == 2:
        parameters = '[{"params": self.net[0].parameters(), "lr": self.lr / 10}, {"params": self.net[-1].parameters()}]'
    if get("unused") != False:  # noqa: E712
        parameters = "self.parameters()"
    make = {
        "sgd": f"torch.optim.SGD({parameters}, lr=self.lr)",
        "momentum": f"torch.optim.SGD({parameters}, lr=self.lr, momentum=0.9)",
        "adam": f"torch.optim.Adam({parameters}, lr=self.lr)",
        "adamw fused": f"torch.optim.AdamW({parameters}, lr=self.lr, fused=True)",
        "lbfgs": f"torch.optim.LBFGS({parameters}, lr=self.lr, max_iter=3)",
    }[get("optimizer")]
    lines = ["def configure_optimizers(self):", *_raise(get, "configure_optimizers"), f"    optimizer = {make}"]
    s = "torch.optim.lr_scheduler."
    if get("manual") == "gan":
        lines.append("    return optimizer, torch.optim.SGD(self.critic.parameters(), lr=0.01)")
    elif get("manual") == "with schedulers":
        lines.append(f"    return [optimizer], [{s}StepLR(optimizer, 1, 0.5)]")
    elif get("scheduler"):
        half = "lambda n: 1 / (1 + n)"
        entry = {
            "step epoch": f"{s}StepLR(optimizer, 1, 0.5)",
            "step batch": f'{{"scheduler": {s}StepLR(optimizer, 2, 0.5), "interval": "step"}}',
            "every 2 batches": f'{{"scheduler": {s}StepLR(optimizer, 1, 0.9), "interval": "step", "frequency": 2}}',
            "every 2 epochs": f'{{"scheduler": {s}StepLR(optimizer, 1, 0.5), "frequency": 2, "name": "named"}}',
            "plateau val": f'{{"scheduler": {s}ReduceLROnPlateau(optimizer, patience=0), "monitor": "val_loss", "strict": False}}',
            "plateau train": f'{{"scheduler": {s}ReduceLROnPlateau(optimizer, patience=0), "monitor": "train_loss", "strict": False}}',
            "one cycle": f'{{"scheduler": {s}OneCycleLR(optimizer, 0.2, total_steps=max(2, int(min(1000, self.trainer.estimated_stepping_batches))) + 8, cycle_momentum=False), "interval": "step"}}',
            "lambda": f"{s}LambdaLR(optimizer, {half})",
            "cosine": f"{s}CosineAnnealingWarmRestarts(optimizer, 2)",
            "two": f'{s}StepLR(optimizer, 1, 0.5), {{"scheduler": {s}LambdaLR(optimizer, {half}), "interval": "step"}}',
            "own step": f'{{"scheduler": {s}StepLR(optimizer, 1, 0.5), "interval": "step"}}',
        }[get("scheduler")]
        if get("configured") == "dict" and get("scheduler") != "two":
            lines.append(f'    return {{"optimizer": optimizer, "lr_scheduler": {entry}}}')
        else:
            lines.append(f"    return [optimizer], [{entry}]")
    else:
        form = {
            "optimizer": "optimizer",
            "list": "[optimizer]",
            "dict": '{"optimizer": optimizer}',
            "lists": "[optimizer], []",
        }
        lines.append(f"    return {form[get('configured')]}")
    if get("scheduler") == "own step":
        lines += [
            "",
            "def lr_scheduler_step(self, scheduler, metric):",
            "    watch.saw('scheduler steps', metric)",
            "    scheduler.step()",
        ]
    return "\n".join(lines) + "\n"


def _raise(get: Any, where: str) -> list[str]:
    if not get("raises") or get("raises_in") != where:
        return []
    test = (
        "FAILS"
        if where in ("setup", "configure_optimizers")
        else f"FAILS and self.trainer.global_step >= {get('raises_at')}"
    )
    return [f"    if {test}:", f'        raise {get("raises")}("on purpose, {where}")']


def _hooks(get: Any) -> list[str]:
    """Methods of the module: what it overrides, logs in its hooks, and where it fails."""
    body: dict[str, list[str]] = {}

    def add(hook: str, *lines: str) -> None:
        body.setdefault(hook, []).extend(f"    {line}" for line in lines)

    log_in = get("log_in")
    if log_in and not log_in.startswith("callback"):
        add(log_in, 'self.log("in_hook", float(self.trainer.global_step))')
    if get("ema") == "in validation":
        add(
            "on_train_batch_end",
            "for name, p in self.net.named_parameters():",
            "    self.average[name].mul_(0.9).add_(p.detach(), alpha=0.1)",
        )
        add("on_validation_start", "self.raw = {n: p.detach().clone() for n, p in self.net.named_parameters()}")
        add(
            "on_validation_start", "for name, p in self.net.named_parameters():", "    p.data.copy_(self.average[name])"
        )
        add("on_validation_end", "for name, p in self.net.named_parameters():", "    p.data.copy_(self.raw[name])")
    if get("keeps") == "state in checkpoint":
        add("on_save_checkpoint", 'arguments[0]["mine"] = self.trainer.global_step')
        add("on_load_checkpoint", 'watch.saw("mine", arguments[0].get("mine"))')
    if get("stops") == "should_stop":
        add("on_train_batch_end", "if self.trainer.global_step == 4:", "    self.trainer.should_stop = True")
    raising = get("raises_in")
    if (
        get("raises")
        and not raising.startswith("callback")
        and raising not in ("training_step", "validation_step", "data", "configure_optimizers")
    ):
        for line in _raise(get, raising):
            add(raising, line[4:])
    found = []
    for hook, lines in body.items():
        found.append(
            f"def {hook}(self, *arguments, **named):\n    super().{hook}(*arguments, **named)\n"
            + "\n".join(lines)
            + "\n"
        )
    overrides = {
        "optimizer_step": """\
            def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
                watch.saw("optimizer_step", [epoch, batch_idx])
                optimizer.step(closure=optimizer_closure)
            """,
        "closure again": """\
            def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
                if batch_idx % 2:
                    optimizer_closure()
                else:
                    optimizer.step(closure=optimizer_closure)
            """,
        "backward": """\
            def backward(self, loss, *arguments, **named):
                watch.saw("backward", loss)
                loss.backward()
            """,
        "clipping": """\
            def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
                watch.saw("clipping", [gradient_clip_val, str(gradient_clip_algorithm)])
                self.clip_gradients(optimizer, gradient_clip_val=0.2, gradient_clip_algorithm="norm")
            """,
        "zero_grad": """\
            def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
                optimizer.zero_grad(set_to_none=False)
            """,
        "transfer": """\
            def transfer_batch_to_device(self, batch, device, dataloader_idx):
                watch.saw("transfer", [str(device), dataloader_idx])
                return super().transfer_batch_to_device(batch, device, dataloader_idx)

            def on_after_batch_transfer(self, batch, dataloader_idx):
                watch.saw("after transfer", dataloader_idx)
                return batch
            """,
        "configure_callbacks": """\
            def configure_callbacks(self):
                return [cb.LambdaCallback(on_train_epoch_end=lambda *_: watch.saw("configured callback", True))]
            """,
    }
    if get("overrides") in overrides:
        found.append(textwrap.dedent(overrides[get("overrides")]))
    return found


# --------------------------------------------------------------------------------------------------- callbacks and trainer


def _callbacks(get: Any) -> str:
    text = ""
    body: dict[str, list[str]] = {}
    log_in = get("log_in") or ""
    if log_in.startswith("callback"):
        body.setdefault(log_in[9:], []).append('pl_module.log("in_callback", float(trainer.global_step))')
    if get("raises") and get("raises_in").startswith("callback"):
        body.setdefault(get("raises_in")[9:], []).append(
            f'if FAILS and trainer.global_step >= {get("raises_at")}:\n    raise {get("raises")}("on purpose, callback")'
        )
    if get("callback") == "stateful":
        body.setdefault("on_train_batch_end", []).append("self.count = getattr(self, 'count', 0) + 1")
    if get("callback") == "stops validation":
        body.setdefault("on_train_epoch_start", []).append("trainer.limit_val_batches = 1")
    if body:
        text += "\nclass Own(cb.Callback):\n"
        for hook, lines in body.items():
            text += (
                f"    def {hook}(self, trainer, pl_module, *arguments):\n"
                + textwrap.indent("\n".join(lines), " " * 8)
                + "\n"
            )
        if get("callback") == "stateful":
            text += "    def state_dict(self):\n        return {'count': self.count}\n"
            text += "    def load_state_dict(self, state):\n        watch.saw('count', state)\n        self.count = state['count']\n"
    if get("ema") == "callback":
        text += textwrap.dedent("""
            class Average(cb.Callback):
                def on_fit_start(self, trainer, pl_module):
                    self.average = {n: p.detach().clone() for n, p in pl_module.named_parameters()}
                def on_train_batch_end(self, trainer, pl_module, *arguments):
                    for name, p in pl_module.named_parameters():
                        self.average[name].mul_(0.9).add_(p.detach(), alpha=0.1)
                def on_validation_start(self, trainer, pl_module):
                    if trainer.state.fn == "fit":
                        self.raw = {n: p.detach().clone() for n, p in pl_module.named_parameters()}
                        for name, p in pl_module.named_parameters():
                            p.data.copy_(self.average[name])
                def on_validation_end(self, trainer, pl_module):
                    if trainer.state.fn == "fit":
                        for name, p in pl_module.named_parameters():
                            p.data.copy_(self.raw[name])
            """)
    if get("checkpoint") == "subclass":
        text += "\nclass Saving(cb.ModelCheckpoint):\n"
        see = 'watch.saw("best and files", [self.best_model_path, sorted(os.listdir(self.dirpath)) if os.path.isdir(self.dirpath or "") else None])'
        hook = get("subclass")
        if hook == "_save_checkpoint":
            text += "    def _save_checkpoint(self, trainer, filepath):\n        super()._save_checkpoint(trainer, filepath)\n"
            text += (
                '        watch.saw("saved", [filepath, trainer.global_step, watch.weights(trainer.lightning_module)])\n'
            )
        elif hook == "setup":
            text += (
                "    def setup(self, trainer, pl_module, stage):\n        super().setup(trainer, pl_module, stage)\n"
            )
            text += '        watch.saw("set up", [stage, self.dirpath])\n'
        elif hook == "state":
            text += "    def state_dict(self):\n        return {**super().state_dict(), 'mine': 1}\n"
            text += "    def load_state_dict(self, state):\n        watch.saw('state', sorted(state))\n        super().load_state_dict(state)\n"
        else:
            text += f"    def {hook}(self, trainer, pl_module, *arguments):\n        super().{hook}(trainer, pl_module, *arguments)\n        {see}\n"
    return text


def _checkpoint(get: Any, directory: str) -> list[str]:
    kind = get("checkpoint")
    if kind not in ("ModelCheckpoint", "two", "subclass"):
        return []
    given = {
        name: get(name) for name in ("every_n_train_steps", "every_n_epochs", "monitor", "save_top_k", "save_last")
    }
    given.update({n: get(n) for n in ("save_weights_only", "save_on_train_epoch_end", "mode", "filename")})
    from tests.healthy.programs import TRAINER

    text = ", ".join(f"{name}={value!r}" for name, value in given.items() if value != TRAINER[name][0])
    name = "Saving" if kind == "subclass" else "cb.ModelCheckpoint"
    found = [f"{name}({directory}{', ' if text else ''}{text})"]
    if kind == "two":
        found.append(f'cb.ModelCheckpoint({directory} + "/other", every_n_train_steps=2, save_top_k=-1)')
    return found


def _trainer(get: Any) -> str:
    callbacks = _checkpoint(get, "directory")
    own = bool(
        (get("log_in") or "").startswith("callback")
        or (get("raises") and get("raises_in").startswith("callback"))
        or get("callback") in ("stateful", "stops validation")
    )
    callbacks += ["Own()"] if own else []
    callbacks += ["Average()"] if get("ema") == "callback" else []
    callbacks += {
        "lambda": ["cb.LambdaCallback(on_train_start=lambda *_: watch.saw('lambda', 1))"],
        "learning rate": ["cb.LearningRateMonitor('step')"] if get("logger") and not get("barebones") else [],
        "timer": ["cb.Timer(timedelta(hours=1))"],
        "summary": ["cb.ModelSummary(2)"] if not get("barebones") else [],
    }.get(get("callback"), [])
    callbacks += {
        "early": ["cb.EarlyStopping('val_loss', patience=0, strict=False)"],
        "early patient": ["cb.EarlyStopping('val_loss', patience=1, mode='max', strict=False)"],
        "early at start": ["cb.EarlyStopping('train_loss', patience=0, check_on_train_epoch_end=True, strict=False)"],
    }.get(get("stops"), [])
    if get("swa"):
        callbacks.append(
            f"cb.StochasticWeightAveraging(swa_lrs=0.05, swa_epoch_start={get('swa')}, annealing_epochs=1)"
        )
    if get("finetuning"):
        callbacks.append("Unfreeze()")
    if get("accumulation_scheduler"):
        callbacks.append(f"cb.GradientAccumulationScheduler({get('accumulation_scheduler')})")
    if get("lr_finder") == "callback":
        callbacks.append("cb.LearningRateFinder(num_training_steps=20)")
    if get("batch_size_finder") == "callback":
        callbacks.append("cb.BatchSizeFinder(max_trials=2, steps_per_trial=1)")
    if get("callback") == "first":
        callbacks.insert(0, "watch.Watch()")
    else:
        callbacks.append("watch.Watch()")
    interval = get("val_check_interval")
    across = isinstance(interval, str)
    options = {
        "accelerator": '"cpu"',
        "devices": 2 if get("strategy") else 1,
        "max_epochs": get("epochs") if get("max_steps") is None or get("epochs") != 2 else 4,
        "max_steps": get("max_steps") or -1,
        "default_root_dir": "directory",
        "logger": {"watch": "watch.Log()", False: "False", "csv": "CSVLogger(directory, name='csv')"}[get("logger")],
        "enable_progress_bar": bool(get("progress_bar")),
        "enable_model_summary": get("callback") == "summary",
        "num_sanity_val_steps": get("sanity"),
        "log_every_n_steps": get("log_every"),
        "callbacks": f"[{', '.join(callbacks)}]",
    }
    if get("checkpoint") == "off" or get("checkpoint") is None:
        options["enable_checkpointing"] = False
    if across:
        options.update(val_check_interval=4 if interval == "across" else 5, check_val_every_n_epoch=None)
    elif interval is not None:
        options["val_check_interval"] = interval
    plain = {
        "min_epochs": "min_epochs", "limit_train_batches": "limit_train_batches", "limit_val_batches": "limit_val_batches",
        "check_val_every_n_epoch": "check_val_every_n_epoch", "fast_dev_run": "fast_dev_run",
        "overfit_batches": "overfit_batches", "accumulate_grad_batches": "accumulate",
        "reload_dataloaders_every_n_epochs": "reload_every", "inference_mode": "inference_mode",
        "detect_anomaly": "detect_anomaly",
    }  # fmt: skip
    from tests.healthy.programs import TRAINER

    for option, name in plain.items():
        if get(name) != TRAINER[name][0] and option not in options:
            options[option] = repr(get(name))
    if get("precision") != "32-true":
        options["precision"] = repr(get("precision"))
    if get("clip"):
        options.update(gradient_clip_algorithm=repr(get("clip")[0]), gradient_clip_val=get("clip")[1])
    if get("stops") == "max_time":
        options["max_time"] = "dict(hours=1)"
    if get("barebones"):
        for name in (
            "logger",
            "enable_progress_bar",
            "num_sanity_val_steps",
            "log_every_n_steps",
            "enable_model_summary",
            "enable_checkpointing",
        ):
            options.pop(name, None)
        options["barebones"] = True
    if get("own_sampler"):
        options["use_distributed_sampler"] = False
    lines = []
    if get("logger") == "csv":
        lines.append("from PL.loggers import CSVLogger")
    if get("finetuning"):
        lines += ["", "class Unfreeze(cb.BaseFinetuning):", "    def freeze_before_training(self, pl_module):"]
        lines += [
            "        self.freeze(pl_module.net[0])",
            "    def finetune_function(self, pl_module, epoch, optimizer):",
        ]
        lines += [
            "        if epoch == 1:",
            "            self.unfreeze_and_add_param_group(pl_module.net[0], optimizer)",
            "",
        ]
    if get("strategy"):
        flags = {}
        if get("unused") == "found" or (get("unused") and not get("static_graph")):
            flags["find_unused_parameters"] = True
        if get("static_graph"):
            flags["static_graph"] = True
        if get("bucket_view"):
            flags["gradient_as_bucket_view"] = True
        start = {"ddp": "popen", "ddp_fork": "fork", "ddp_spawn": "spawn"}[get("strategy")]
        text = ", ".join(f"{n}={v}" for n, v in flags.items())
        lines.append("from PL.strategies import DDPStrategy")
        options["strategy"] = (
            f'DDPStrategy(start_method="{start}", timeout=timedelta(seconds=45){", " if text else ""}{text})'
        )
    if get("async_checkpoint"):
        lines.append("from PL.plugins import AsyncCheckpointIO")
        options["plugins"] = "[AsyncCheckpointIO()]"
    if get("progress_bar") == "rich":
        options["callbacks"] = options["callbacks"].replace("[", "[cb.RichProgressBar(), ", 1)
    lines += ["", 'def trainer(directory="run", **more):', "    options = dict("]
    lines += [f"        {name}={value}," for name, value in options.items()]
    lines += ["    )", "    return pl.Trainer(**{**options, **more})", ""]
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------------------------- main


def _given(get: Any) -> str:
    """The loaders, as ``fit`` takes them."""
    if get("by") == "module":
        return ""
    if get("by") == "datamodule":
        return ", datamodule=Data()"
    return ", train_loader(), val_loaders()"


def _resumed(get: Any) -> str:
    epochs = get("epochs") + get("more_epochs")
    more = f", max_epochs={epochs}" + (f", max_steps={get('max_steps') + 2}" if get("max_steps") else "")
    return f'trainer("resumed/" + path.replace("/", "_"){more}).fit(Model(**MODEL){_given(get)}, ckpt_path=path)'


def _main(get: Any) -> str:
    fit = f"t.fit(model{_given(get)})"
    epochs = get("epochs") + max(get("more_epochs"), 1)
    lines = {
        None: ["model = Model(**MODEL)", "t = trainer()"],
        "init_module": ["t = trainer()", "with t.init_module():", "    model = Model(**MODEL)"],
        "decorator": ["t = trainer()", "@t.init_module()", "def make():", "    return Model(**MODEL)", "make()"]
        + ["model = make()"],
        "twice": ["t = trainer()", "context = t.init_module()", "with context:", "    model = Model(**MODEL)", "try:"]
        + ["    with context:", "        model = Model(**MODEL)", "except Exception as error:"]
        + ["    watch.saw('entered again', type(error).__name__)"],
    }[get("made")]
    if get("compiled") == "module":
        lines.append('model = torch.compile(model, backend="eager")')
    if get("lr_finder") == "tuner":
        lines += ["from PL.tuner import Tuner", f"found = Tuner(t).lr_find(model{_given(get)}, num_training=20)"]
        lines += ['watch.saw("lr_find", [found.results, found.suggestion(), model.lr] if found else None)']
    if get("batch_size_finder") in ("tuner", "binary"):
        mode = "power" if get("batch_size_finder") == "tuner" else "binsearch"
        given = ", datamodule=Data()" if get("by") == "datamodule" else ""
        if get("by") != "arguments":
            lines += ["from PL.tuner import Tuner"]
            lines += [
                f'watch.saw("batch size", Tuner(t).scale_batch_size(model{given}, mode="{mode}", max_trials=2, steps_per_trial=1))'
            ]
    if get("raises"):
        lines += [
            "try:",
            f"    {fit}",
            "except BaseException as error:",
            '    watch.saw("raised", error)',
            "FAILS.clear()",
        ]
    else:
        lines.append(fit)
    lines += [
        'watch.saw("fitted", [t.global_step, t.current_epoch, str(t.state.status), dict(t.callback_metrics), watch.weights(model)])'
    ]
    loaders = _given(get).replace("train_loader(), ", "")
    if get("by_hand"):
        lines.append('t.save_checkpoint("by_hand.ckpt")')
        if get("async_checkpoint"):
            lines.append("t.strategy.checkpoint_io.teardown()")  # waits for the thread that writes
    if get("checkpoint") in ("ModelCheckpoint", "two", "subclass", "default") and not get("barebones"):
        lines.append(
            'watch.saw("best", [t.checkpoint_callback.best_model_path, t.checkpoint_callback.best_model_score])'
        )
    then = get("then")
    if then == "validate":
        lines.append(f'watch.saw("validate", t.validate(model{loaders}, verbose=False))')
    elif then == "validate best":
        lines.append(f'watch.saw("validate", trainer("evaluated").validate(model{loaders}, verbose=False))')
    elif then == "test":
        lines.append(
            f'watch.saw("test", t.test(model, train_loader() if not isinstance(train_loader(), (dict, list)) else DataLoader(Numbers(6), batch_size=2{_collate(get)}), verbose=True))'
            if get("data") in ("map", "workers", "iterable", "iterable with length")
            else f'watch.saw("test", t.test(model, DataLoader(Numbers(6), batch_size=2{_collate(get)}), verbose=True))'
        )
    elif then == "test a new trainer":
        lines.append(
            f'watch.saw("test", trainer("tested").test(model, DataLoader(Numbers(6), batch_size=2{_collate(get)})))'
        )
    elif then == "predict":
        lines.append(f'watch.saw("predict", t.predict(model, DataLoader(Numbers(6), batch_size=2{_collate(get)})))')
    elif then == "fit on":
        lines += [f"t.fit_loop.max_epochs = {epochs}", fit]
        lines += [
            'watch.saw("fitted on", [t.global_step, t.current_epoch, dict(t.callback_metrics), watch.weights(model)])'
        ]
    elif then == "fit again":
        lines += ["t = trainer('again')", fit, 'watch.saw("fitted again", [t.global_step, watch.weights(model)])']
    resume = get("resume")
    each = {
        "last": 'sorted(glob.glob("run/**/*.ckpt", recursive=True), key=os.path.getmtime)[-1:]',
        "each": 'sorted(glob.glob("**/*.ckpt", recursive=True))',
        "same directory": 'sorted(glob.glob("run/**/*.ckpt", recursive=True))[-1:]',
        "same trainer": 'sorted(glob.glob("run/**/*.ckpt", recursive=True))[-1:]',
    }
    if resume in each:
        again = _resumed(get)
        if resume == "same directory":
            again = again.replace('"resumed/" + path.replace("/", "_")', '"run"')
        if resume == "same trainer":
            again = f"t.fit_loop.max_epochs = {epochs}; t.fit(model{_given(get)}, ckpt_path=path)"
        lines += [f"for path in {each[resume]}:", '    watch.saw("from", path)']
        if get("strategy"):
            lines += [f"    {again}"]
        else:
            lines += [
                "    try:",
                f"        {again}",
                "    except BaseException as error:",
                '        watch.saw("raised", error)',
            ]
    return "\n\ndef main():\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
