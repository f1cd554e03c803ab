"""Programs in which torch.compile meets Lightning: each way to train, compiled in each way.

``python compiled.py Gan.module`` prints exit status, weights and graph breaks as a line of JSON. Without a name, all
programs run, each in a new process. To add one, write a class and list it in ``TRAINED``, or a function and list it in
``FABRIC``. For another way to compile, add a function to ``FORMS``.

``SCENARIO_SHIM=1`` runs them with the shim, ``SCENARIO_NAMESPACE`` names Lightning, ``BACKEND`` torch's backend.
"""

import os

if SHIM := os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401

import contextlib
import hashlib
import importlib
import json
import logging
import sys
import tempfile
import warnings

import torch
import torch._dynamo
from torch import nn
from torch.optim import SGD, Adam
from torch.utils.data import DataLoader

ROOT = os.environ.get("SCENARIO_NAMESPACE", "lightning")
pl = importlib.import_module("lightning.pytorch" if ROOT == "lightning" else "pytorch_lightning")
fabric = importlib.import_module("lightning.fabric" if ROOT == "lightning" else "lightning_fabric")
BACKEND = os.environ.get("BACKEND", "eager")
BATCHES = [torch.arange(n, n + 12.0).reshape(3, 4).cos() for n in range(4)]


def compiled(what, **options):
    return torch.compile(what, backend=BACKEND, **options)


class Plain(pl.LightningModule):
    options = {}

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        self.other = nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        return self.net(batch).mean()

    def configure_optimizers(self):
        return SGD(self.parameters(), 0.1, momentum=0.5)


class Properties(Plain):
    """Reads properties of the Trainer."""

    def training_step(self, batch, batch_idx):
        trainer = self.trainer
        scale = 1 + self.current_epoch + trainer.max_epochs + trainer.world_size + trainer.num_training_batches
        scale += trainer.training + 2 * trainer.sanity_checking + 4 * trainer.validating + self.global_rank
        scale += trainer.is_last_batch + len(trainer.callbacks) + trainer.is_global_zero + trainer.evaluating
        return super().training_step(batch, batch_idx) * scale + batch_idx + self.global_step


class Logged(Plain):
    options = {"limit_val_batches": 2}

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        self.log("loss", loss, prog_bar=True)
        self.log_dict({"double": 2 * loss, "index": batch_idx}, on_epoch=True)
        return loss * 2

    def validation_step(self, batch, batch_idx):
        self.log("validation", super().validation_step(batch, batch_idx), sync_dist=True)


class Accumulating(Plain):
    options = {"accumulate_grad_batches": 2, "gradient_clip_val": 0.1}


class Scheduled(Plain):
    def training_step(self, batch, batch_idx):
        return super().training_step(batch, batch_idx) * self.optimizers().param_groups[0]["lr"]

    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1), "interval": "step"}]


class Hooks(Plain):
    """Has hooks, callbacks and a profiler."""

    options = {"callbacks": [pl.callbacks.Timer()], "profiler": "simple"}

    def training_step(self, batch, batch_idx):
        self.all_gather(batch)
        return super().training_step(batch, batch_idx)

    def on_train_batch_start(self, batch, batch_idx):
        self.other.weight.data.mul_(0.9)

    def on_before_optimizer_step(self, optimizer):
        next(self.net.parameters()).grad.mul_(0.5)


class Mixed(Plain):
    options = {"precision": "bf16-mixed"}

    def training_step(self, batch, batch_idx):
        with torch.no_grad():
            target = self.other(batch)
        return (self.net(batch) - self.other(batch) + target).float().pow(2).mean()


class Manual(Plain):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.net(batch).pow(2).mean()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return loss


class ManualMixed(Manual):
    options = {"precision": "bf16-mixed"}


class ManualDDP(Manual):
    options = {"strategy": "ddp_find_unused_parameters_true"}


class Gan(Manual):
    def training_step(self, batch, batch_idx):
        first, second = self.optimizers()
        self.toggle_optimizer(first)
        self.manual_backward((self.net(batch) - self.other(batch)).pow(2).mean())
        first.step()
        first.zero_grad()
        self.untoggle_optimizer(first)
        self.toggle_optimizer(second)
        self.manual_backward((self.net(batch) + self.other(batch)).pow(2).mean())
        second.step()
        second.zero_grad()
        self.untoggle_optimizer(second)

    def configure_optimizers(self):
        return SGD(self.net.parameters(), 0.1, momentum=0.5), SGD(self.other.parameters(), 0.1)


class LoggedGan(Gan):
    def training_step(self, batch, batch_idx):
        super().training_step(batch, batch_idx)
        self.log("sum", self.other.weight.sum(), prog_bar=True)


class Clipped(Manual):
    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.net(batch).pow(2).mean())
        self.clip_gradients(optimizer, gradient_clip_val=0.05, gradient_clip_algorithm="norm")
        optimizer.step()

    def configure_optimizers(self):
        return Adam(self.net.parameters(), 0.1)


class ClippedMixed(Clipped):
    options = {"precision": "bf16-mixed"}


class ManualScheduled(Manual):
    """Accumulates over two batches, with a closure, and steps its schedulers."""

    def training_step(self, batch, batch_idx):
        optimizers, schedulers = self.optimizers(), self.lr_schedulers()

        def closure():
            loss = self.net(batch).pow(2).mean() / 2
            self.manual_backward(loss)
            return loss

        if batch_idx % 2:
            optimizers[0].step(closure)
            optimizers[0].zero_grad()
        else:
            self.manual_backward(self.other(batch).pow(2).mean())
            with optimizers[1].toggle_model(sync_grad=bool(batch_idx)):
                optimizers[1].step()
        schedulers[0].step()
        if self.trainer.is_last_batch:
            schedulers[1].step()

    def configure_optimizers(self):
        optimizers = [SGD(self.net.parameters(), 0.1), SGD(self.other.parameters(), 0.1)]
        return optimizers, [torch.optim.lr_scheduler.ExponentialLR(one, 0.5) for one in optimizers]


TRAINED = (
    *(Plain, Properties, Logged, Accumulating, Scheduled, Hooks, Mixed),
    *(Manual, ManualMixed, ManualDDP, Gan, LoggedGan, Clipped, ClippedMixed, ManualScheduled),
)


def module(trainer, model, loader):
    trainer.fit(compiled(model), loader, loader)


def in_place(trainer, model, loader):
    model.compile(backend=BACKEND)
    trainer.fit(model, loader, loader)


def step(trainer, model, loader):
    model.training_step, model.validation_step = compiled(model.training_step), compiled(model.validation_step)
    trainer.fit(model, loader, loader)


def whole_step(trainer, model, loader):
    model.training_step = compiled(model.training_step, fullgraph=True)
    trainer.fit(model, loader, loader)


def layer(trainer, model, loader):
    model.net = compiled(model.net)
    model.other.compile(backend=BACKEND)
    trainer.fit(model, loader, loader)


def loop(trainer, model, loader):
    compiled(trainer.fit)(model, loader, loader)


FORMS = {
    module: TRAINED,
    layer: TRAINED,
    in_place: (Plain, ManualDDP, Gan),
    step: (Logged, Gan),
    whole_step: (Plain, Properties, Gan),
    loop: (Plain, LoggedGan),  # these take several seconds each
}
"""The ways to compile a model."""


def trained(kind, form):
    def program():
        model = kind()
        form(trainer_of(model), model, DataLoader(BATCHES, batch_size=None))
        return observed(model)

    return program


def trainer_of(model):
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    options = {"accelerator": "cpu", "devices": 1, "max_epochs": 2, "limit_val_batches": 0, **quiet, **model.options}
    return pl.Trainer(default_root_dir=tempfile.mkdtemp(dir=os.environ.get("SCENARIO_OUT")), **options)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x).tanh())

    def score(self, x):
        return self.head(x)


def fit(lightning, net, optimizer, loader):
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = net(batch).pow(2).mean()
            lightning.backward(loss)
            lightning.clip_gradients(net, optimizer, max_norm=0.1)
            optimizer.step()
            lightning.all_gather(loss.detach())


def before(lightning, net, loader):
    fit(lightning, *lightning.setup(compiled(net), SGD(net.parameters(), 0.1)), loader)


def after(lightning, net, loader):
    net, optimizer = lightning.setup(net, SGD(net.parameters(), 0.1))
    fit(lightning, compiled(net), optimizer, loader)


def after_in_place(lightning, net, loader):
    net, optimizer = lightning.setup(net, SGD(net.parameters(), 0.1))
    net.compile(backend=BACKEND)
    fit(lightning, net, optimizer, loader)


def whole_loop(lightning, net, loader):
    compiled(fit)(lightning, *lightning.setup(net, SGD(net.parameters(), 0.1)), loader)


def function(lightning, net, loader):
    """Calls the wrapper, a part and a method of it within a compiled function."""
    net, optimizer = lightning.setup(net, SGD(net.parameters(), 0.1))
    with contextlib.suppress(AttributeError):  # older releases know only training_step and the other steps
        net.mark_forward_method("score")

    @compiled
    def loss_of(batch):
        return (net(batch) + net.score(batch) + net.head(net.body(batch))).pow(2).mean()

    for batch in loader:
        lightning.backward(loss_of(batch))
        optimizer.step()
        optimizer.zero_grad()


def one_graph(lightning, net, loader):
    """Calls the loss function, and the model that was set up, within one graph."""
    net, optimizer = lightning.setup(net, SGD(net.parameters(), 0.1))
    step = compiled(lambda batch: net(batch).pow(2).mean(), fullgraph=True)
    for batch in loader:
        lightning.backward(step(batch))
        optimizer.step()


FABRIC = (before, after, after_in_place, whole_loop, function, one_graph)
SETTINGS = {
    "fabric": {},
    "fabric_mixed": {"precision": "bf16-mixed"},
    "fabric_ddp": {"strategy": "ddp"},
    "fabric_two_ranks": {"strategy": "ddp_fork", "devices": 2},
}


def with_fabric(train, options):
    def program():
        lightning = fabric.Fabric(**{"accelerator": "cpu", "devices": 1, **options})

        def launched(lightning):
            pl.seed_everything(3)
            net = Net()
            train(lightning, net, lightning.setup_dataloaders(DataLoader(BATCHES, batch_size=None)))
            return observed(net)

        return lightning.launch(launched)

    return program


PROGRAMS = {
    **{f"{kind.__name__}.{form.__name__}": trained(kind, form) for form, kinds in FORMS.items() for kind in kinds},
    **{f"{name}.{way.__name__}": with_fabric(way, SETTINGS[name]) for name in SETTINGS for way in FABRIC},
}


def observed(net):
    weights = b"".join(value.detach().numpy().tobytes() for value in net.state_dict().values())
    breaks = torch._dynamo.utils.counters["graph_break"]
    if os.environ.get("REASONS"):
        print(json.dumps(breaks, indent=2), file=sys.stderr)
    return {"ended": "well", "weights": hashlib.sha256(weights).hexdigest(), "breaks": sum(breaks.values())}


def run(name):
    """Run a program in this process and return the result."""
    pl.seed_everything(3)
    try:
        return PROGRAMS[name]()
    except Exception as error:
        print(f"{name}: {error}", file=sys.stderr)
        return {"ended": type(error).__name__}


def run_forked(name):
    """Run a program in a forked process, in which everything is imported."""
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w") as answer:
            json.dump(run(name), answer)
        sys.stderr.flush()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        result = answer.read()
    os.wait()
    return json.loads(result) if result else {"ended": "died"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for part in ("lightning", "lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logging.getLogger(part).setLevel(logging.ERROR)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    if not SHIM:  # upstream's fix of 21836, which programs that log need for the comparison
        pl.LightningModule.log = torch._dynamo.disable(pl.LightningModule.log)
    for chosen in sys.argv[1:] or PROGRAMS:
        result = run(chosen) if len(sys.argv) == 2 else run_forked(chosen)
        print(json.dumps({"program": chosen, **result}), flush=True)
