"""Issue 20388: each self.log searches its value, and creates a record of its options. Counts how often.

Cases: ``plain``; ``other`` (another option in the third step), ``changed`` (a callback changes the record),
    ``replaced`` (the record's class is replaced), ``rounded`` and ``detached`` (a step of Lightning is replaced),
    ``subclass`` (a tensor of another class), ``trainer`` (a Trainer's subclass), ``wrapped`` (the log method of the
    Trainer's collection), ``iterator`` (the step takes the loader's), ``compiled`` (logged in a compiled function),
    ``torch-1`` (tensors lack ``is_xla``); and invalid logs: ``two`` elements, the ``name`` of the loader, from a wrong
    ``hook``; ``logger`` (requested, but missing), ``barebones``. All log once without a Trainer.
"""

from _expect import bug, same


def uncounted(observations):
    return [{**rank, "counted": None} for rank in observations]


def shows(text):
    return lambda seen: any(text in str(one) for one in seen["seen"])


REPORTED = {
    "other": "twice in `training_step` with different arguments",
    "changed": "twice in `training_step` with different arguments",
    "two": "the tensor must have a single element",
    "name": "should not contain information about `dataloader_idx`",
    "hook": "You can't `self.log()` inside `on_fit_start`",
    "iterator": "`self.log(..., batch_size=...)` should be provided",
    "logger": "but have no logger configured",
    "barebones": "`Trainer(barebones=True)` is configured",
    "wrapped": "training_step",
}


EXPECT = [
    bug(
        "plain",
        stock=lambda seen: seen["counted"] > 400,
        compare=lambda ranks: [{**rank, "counted": rank["counted"] > 400} for rank in ranks],
        compare_like=lambda ranks: [{**rank, "counted": False} for rank in ranks],
    ),
    same(
        "compiled",
        "compiled function logs as on stock",
        compare=lambda ranks: [{**rank, "counted": None} for rank in ranks],
        alone=True,
        on=("2.5.0", "2.6.6"),
    ),
    same(
        "torch-1",
        "torch 1 logs as on stock",
        compare=lambda ranks: [{**rank, "counted": None} for rank in ranks],
        alone=True,
        on=("2.0.0", "2.2.5"),
    ),
    *[
        same(
            case,
            "errors and warnings are those of stock",
            shows(text),
            compare=uncounted,
            alone=True,
            on="2.6.6" if case == "wrapped" else ("2.0.0", "2.2.5", "2.6.6"),
        )
        for case, text in REPORTED.items()
    ],
]

import sys
import warnings

import _scenario as scenario
import torch
import torchmetrics
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

result = scenario.pytorch("trainer.connectors.logger_connector.result")
case, seen, counted = scenario.CASE, [], []


class Tensor(torch.Tensor):
    pass


class Model(Linear):
    def __init__(self):
        super().__init__()
        self.metric = torchmetrics.MeanMetric()

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).mean()
        value = loss.as_subclass(Tensor) if case == "subclass" else loss
        if case == "two":
            value = torch.stack((loss, loss))
        name = "loss/dataloader_idx_0" if case == "name" else "loss"
        self.log(name, value, prog_bar=case == "other" and batch_idx == 2, logger=True if case == "logger" else None)
        self.log("one", loss.reshape(1), True, False)
        self.log("graph", loss, enable_graph=True)
        self.log_dict({"both": loss, "sum": loss.detach()}, on_step=True, on_epoch=True, reduce_fx="sum")
        self.log("max", loss, reduce_fx=torch.max, on_epoch=True, batch_size=3)
        self.log("number", float(batch_idx), reduce_fx="AVG", on_epoch=True, sync_dist=True, rank_zero_only=True)
        self.metric.update(loss)
        self.log("metric", self.metric)
        seen.append({name: float(value) for name, value in self.trainer.callback_metrics.items()})
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.log("value", self.layer(batch[0]).mean())
        self.log("each", self.layer(batch[0]).mean(), add_dataloader_idx=False) if dataloader_idx else None

    def on_train_batch_end(self, outputs, batch, batch_idx):
        kept = self.trainer._results
        seen.append(sorted(str(one.meta) for one in kept.values() if "at 0x" not in str(one.meta)))
        seen.append(sorted(f"{key} {one!r} {one.meta.sync.op}" for key, one in kept.items() if one.is_tensor))
        if case == "changed" and batch_idx == 1:
            kept["training_step.loss"].meta.sync.op = "max"

    def on_fit_start(self):
        if case == "hook":
            self.log("loss", torch.ones(()))


class Iterator(Model):
    def training_step(self, dataloader_iter):
        return super().training_step(next(dataloader_iter)[0], 0)


class Trainer(scenario.pl.Trainer):
    @property
    def logger(self):
        seen.append("logger")

    @property
    def _results(self):
        seen.append("results")
        return super()._results


def profile(frame, event, arg):
    name, caller = frame.f_code.co_name, frame.f_back and frame.f_back.f_code.co_name
    if event == "call" and (name == "_parse_reduce_fx" or (name == "apply_to_collection" and caller == "log")):
        counted.append(1)


class Record(result._Metadata):
    def __post_init__(self):
        seen.append(f"record {self.name}")
        super().__post_init__()


to_tensor = scenario.pl.LightningModule._LightningModule__to_tensor
detach, log = result.recursive_detach, result._ResultCollection.log


def rounded(self, value, name):
    return to_tensor(self, value, name).mul(100).round().div(100)


def detached(value, *args, **options):
    seen.append(f"detached {type(value).__name__}")
    return detach(value, *args, **options)


def wrapper(self, *args, **options):
    shown = {name: getattr(value, "__qualname__", value) for name, value in options.items()}
    seen.append(f"{args} {sorted(shown.items())}")
    log(self, *args, **options)


REPLACED = {
    "replaced": (result, "_Metadata", Record),
    "rounded": (scenario.pl.LightningModule, "_LightningModule__to_tensor", rounded),
    "detached": (result, "recursive_detach", detached),
    "wrapped": (result._ResultCollection, "log", wrapper),
    "torch-1": (torch.Tensor, "is_xla", property(lambda self: object().is_xla)),
    "trainer": (scenario.pl, "Trainer", Trainer),
}


def train():
    scenario.pl.seed_everything(3)
    if case in REPLACED:
        setattr(*REPLACED[case])
    loader = DataLoader(TensorDataset(torch.arange(16.0).reshape(8, 2)), batch_size=1)
    model, options = Iterator() if case == "iterator" else Model(), {"max_epochs": 2}
    if case == "barebones":
        options = {"max_epochs": 1, "barebones": True, "default_root_dir": None}
    trainer = scenario.trainer(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.log("alone", torch.ones(()))
        sys.setprofile(profile)
        try:
            trainer.fit(model, loader, [loader, loader])
        except Exception as error:
            seen.append(f"{type(error).__name__}: {error}")
        sys.setprofile(None)
    seen.extend(str(one.message) for one in caught if "self.log" in str(one.message))
    scenario.observe(weights=model.layer.weight, metrics=dict(trainer.callback_metrics))


def compiled():
    from torch._dynamo.utils import counters

    kept = result._ResultCollection(training=True)
    given = dict.fromkeys(("prog_bar", "enable_graph", "sync_dist", "rank_zero_only", "on_epoch"), False)
    given.update(dict.fromkeys(("logger", "on_step", "add_dataloader_idx"), True), reduce_fx="mean", batch_size=1)
    given.update(sync_dist_fn=result._Sync.no_op, sync_dist_group=None, metric_attribute=None)

    def step(value):
        kept.log("training_step", "loss", value, **given)
        return value + 1

    fast = torch.compile(step, backend="eager")
    seen.extend(fast(torch.full((1,), float(number))).item() for number in range(3))
    seen.append(repr(kept))
    breaks = sum(counters["graph_break"].values())
    seen.append([counters["frames"]["ok"], counters["stats"]["unique_graphs"], breaks])


if __name__ == "__main__":
    (compiled if case == "compiled" else train)()
    scenario.observe(seen=seen, counted=len(counted))
