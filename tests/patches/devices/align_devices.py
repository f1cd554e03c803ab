"""Issue 20276: accelerate's hooks move a model's inputs to the device where it was loaded, in every rank.

Cases: ``ddp``, ``fsdp`` and ``peft`` (Trainer), ``fabric``, each on two devices and also as
``<case>_without_hooks``, the recommended usage; ``spread`` and ``offloaded`` (Trainer, two devices), which cannot be
moved; ``one_device``, several trainings one after the other. Needs two CUDA devices, simulated or real, and accelerate;
``peft`` needs transformers and peft as well.

``ACCELERATE_FIRST=1`` imports accelerate before Lightning. ``SCENARIO_PACKAGES`` names folders where these packages
are installed, if that is outside of the environment.
"""

from _expect import bug, fixed, whole_run

BUG = "Expected all tensors to be on the same device"

EXPECT = [
    bug("ddp", stock=BUG, simulated_cuda=True, compare="losses", like="ddp_without_hooks"),
    bug(
        "fabric",
        stock=whole_run(lambda result: any(BUG in rank.get("error", "") for rank in result.observations)),
        simulated_cuda=True,
        compare="losses",
        like="fabric_without_hooks",
    ),
    fixed(
        "ddp_spawn",
        "each spawned rank trains like a model without hooks",
        stock=BUG,
        patched=whole_run(lambda result: [len(rank["losses"]) for rank in result.observations] == [4, 4]),
        like="{}_without_hooks",
        program="align_devices_spawn",
        simulated_cuda=True,
        fresh=True,
    ),
]

import copy
import os
import sys
import tempfile

import _scenario as scenario
import torch
from _model import Module
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def find_packages():
    sys.path.extend(folder for folder in os.environ.get("SCENARIO_PACKAGES", "").split(os.pathsep) if folder)


if os.environ.get("ACCELERATE_FIRST") == "1":
    find_packages()
    import accelerate.hooks  # noqa: F401

Fabric = scenario.fabric().Fabric

BEFORE = {}
if scenario.CASE == "one_device":  # a program that does not import accelerate
    layer = torch.nn.Linear(2, 2, device="cpu")
    Fabric(accelerator="gpu", devices=[1]).setup_module(layer)
    BEFORE = {"device": str(layer.weight.device), "imported": "accelerate" in sys.modules}
find_packages()

from accelerate import cpu_offload_with_hook, dispatch_model
from accelerate.hooks import AlignDevicesHook, ModelHook, add_hook_to_module, remove_hook_from_module


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.parts = nn.ModuleDict({"norm": nn.BatchNorm1d(8), "drop": nn.Dropout(0.0)})

    def forward(self, x, scale=None):
        y = self.parts["drop"](torch.relu(self.linear(x)))
        return self.parts["norm"](x + (y if scale is None else y * scale["by"]))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = self.embed(x).mean(1)
        for block in self.blocks:
            y = block(y, scale={"by": torch.full((1,), 0.5, device=y.device)})
        return self.head(y)


class Counting(ModelHook):
    """A user hook, in front of the one that accelerate adds."""

    def post_forward(self, module, output):
        module.calls = getattr(module, "calls", 0) + 1
        return output


SPREAD = {"embed": 0, "blocks.0": 0, "blocks.1": 1, "head": 1}
OFFLOADED = {"embed": 0, "blocks.0": 0, "blocks.1": "cpu", "head": 0}


def net(device_map=None):
    torch.manual_seed(3)
    model = Net()
    if device_map is None:
        return model.to(0)
    if device_map == {"": 0}:
        add_hook_to_module(model.head, Counting())
        add_hook_to_module(model.head, AlignDevicesHook(0, io_same_device=True), append=True)
    return dispatch_model(model, device_map, force_hooks=True)


def language_model(hooks=True):
    """A model as after ``from_pretrained(load_in_8bit=True)``: all on one device, with hooks; adapters on top."""
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=16,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        tie_word_embeddings=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        LlamaForCausalLM(config).save_pretrained(folder)
        model = LlamaForCausalLM.from_pretrained(folder, device_map={"": 0})
    model = dispatch_model(model, {"": 0}, force_hooks=True)
    if not hooks:
        model = without_hooks(model)  # before the adapters: remove_hook_from_module fails on PEFT's wrapper
    return get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))


def without_hooks(model):
    return remove_hook_from_module(model, recurse=True)


class Model(Module):
    def __init__(self, make):
        super().__init__()
        self.net = make()
        self.extra = nn.Linear(4, 4)
        self.losses = []

    def loss(self, x):
        if hasattr(self.net, "peft_config"):
            output = self.net(input_ids=x, labels=x)
            return output.loss + self.extra(output.logits[..., :4]).pow(2).mean()
        return self.extra(self.net(x)).pow(2).mean()

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch[0])
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        self.losses.append(self.loss(batch[0]))


def loader():
    torch.manual_seed(5)
    return DataLoader(TensorDataset(torch.randint(0, 16, (24, 6))), batch_size=4)


def pinned(model):
    """Return the device of each hook and the device map after the model was placed."""
    devices, maps = set(), []
    for module in model.modules():
        hooks = [module.__dict__["_hf_hook"]] if "_hf_hook" in module.__dict__ else []
        while hooks:
            hook = hooks.pop()
            hooks += getattr(hook, "hooks", [])
            if getattr(hook, "execution_device", None) is not None:
                devices.add(str(hook.execution_device))
        if "hf_device_map" in module.__dict__:
            maps.append({name: str(device) for name, device in module.hf_device_map.items()})
    return {"hooks": sorted(devices), "maps": maps}


class Look(scenario.pl.Callback):
    """Records the hooks while the model is on its device for training."""

    def __init__(self):
        self.seen = {}

    def on_train_batch_start(self, trainer, module, *args):
        self.seen = pinned(module.net)
        self.devices = sorted({str(p.device) for p in module.parameters()})


def fit(make, **options):
    torch.manual_seed(9)
    model, look = Model(make), Look()
    trainer = scenario.trainer(max_epochs=1, limit_val_batches=1, callbacks=[look], **options)
    trainer.fit(model, loader(), loader())
    return {"losses": torch.stack([loss.cpu() for loss in model.losses]), "pinned": look.seen}


def with_fabric(fabric, model, **options):
    torch.manual_seed(9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        wrapped, optimizer = fabric.setup(model, optimizer, **options)
        placed = pinned(model)
        losses = []
        for (x,) in loader():
            x = fabric.to_device(x)
            problem, loss = "", None
            try:
                loss = wrapped(x).pow(2).mean()
            except RuntimeError as error:
                problem = str(error)
            if fabric.all_reduce(torch.tensor(float(bool(problem)), device=fabric.device), reduce_op="sum") > 0:
                return {"error": problem}
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach().cpu())
    except (RuntimeError, NotImplementedError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"losses": torch.stack(losses), "pinned": placed}


def one_device():
    """Run each case that trains on one device, in one process."""
    second = {"accelerator": "gpu", "devices": [1]}

    class StaysSpread(Model):
        """A program that keeps its model where accelerate put it."""

        def to(self, *args, **kwargs):
            self.extra.to(1)
            return self

    def stays_spread():
        torch.manual_seed(9)
        model = StaysSpread(lambda: net(SPREAD))
        trainer = scenario.trainer(max_epochs=1, limit_val_batches=0, **second)
        trainer.fit(model, loader())
        return {"losses": torch.stack(model.losses), "pinned": pinned(model.net)}

    def offloaded_whole():
        model = Model(lambda: cpu_offload_with_hook(net(), torch.device("cuda:1"))[0])
        trainer = scenario.trainer(logger=False, **second)
        trainer.validate(model, loader(), verbose=False)
        return {"losses": torch.stack(model.losses)}

    def fabric(device, device_map, **options):
        model = net(device_map) if device_map else without_hooks(net({"": 0}))
        return with_fabric(Fabric(accelerator="gpu", devices=[device]), model, **options)

    def two_models():
        """Load two models on different devices, like a teacher and a student."""

        class Pair(Model):
            def __init__(self, make):
                super().__init__(make)
                self.teacher = dispatch_model(copy.deepcopy(net()), {"": 1}, force_hooks=True).requires_grad_(False)

            def loss(self, x):
                return (self.net(x) - self.teacher(x)).pow(2).mean() + super().loss(x)

        torch.manual_seed(9)
        model, look = Pair(lambda: net({"": 0})), Look()
        scenario.trainer(max_epochs=1, limit_val_batches=0, callbacks=[look], **second).fit(model, loader())
        return {"losses": torch.stack(model.losses), "pinned": look.seen}

    return {
        "trainer": lambda: fit(lambda: net({"": 0}), **second),
        "trainer_without_hooks": lambda: fit(lambda: without_hooks(net({"": 0})), **second),
        "loaded_there": lambda: fit(lambda: net({"": 1}), **second),
        "on_the_cpu": lambda: fit(lambda: net({"": 0}), accelerator="cpu"),
        "on_the_cpu_without_hooks": lambda: fit(lambda: without_hooks(net({"": 0})), accelerator="cpu"),
        "gathered": lambda: fit(lambda: net(SPREAD), **second),
        "two_models": two_models,
        "stays_spread": stays_spread,
        "offloaded": lambda: fit(lambda: net(OFFLOADED), **second),
        "offloaded_whole": offloaded_whole,
        "fabric": lambda: fabric(1, {"": 0}),
        "fabric_without_hooks": lambda: fabric(1, None),
        "fabric_offloaded": lambda: fabric(0, OFFLOADED),
        "fabric_offloaded_left_alone": lambda: fabric(0, OFFLOADED, move_to_device=False),
        "fabric_spread_left_alone": lambda: fabric(0, SPREAD, move_to_device=False),
    }


def attempt(training):
    with scenario.warnings.catch_warnings(record=True) as caught:
        scenario.warnings.simplefilter("always")
        try:
            seen = training()
        except (RuntimeError, NotImplementedError) as error:
            seen = {"error": f"{type(error).__name__}: {error}"}
    said = [str(w.message) for w in caught if w.category.__name__ == "LightningPatchesWarning"]
    return {**seen, "warnings": said}


if __name__ == "__main__":
    case, _, recommended = scenario.CASE.partition("_without_")
    gpus = {"accelerator": "gpu", "devices": 2}
    makes = {"peft": language_model, "spread": lambda: net(SPREAD), "offloaded": lambda: net(OFFLOADED)}
    plain = makes.get(case, lambda: net({"": 0}))
    make = (lambda: without_hooks(plain())) if recommended else plain
    if recommended and case == "peft":
        make = lambda: language_model(hooks=False)  # noqa: E731
    if recommended and case == "fsdp":  # copies no weights from another GPU
        make = lambda: without_hooks(plain()).cpu()  # noqa: E731
    if case == "one_device":
        scenario.observe(without_accelerate=BEFORE)
        scenario.observe(**{name: attempt(training) for name, training in one_device().items()})
    elif case == "fabric":
        fabric = Fabric(strategy="ddp", **gpus)
        fabric.launch()
        scenario.observe(**with_fabric(fabric, make()))
    else:
        strategy = case if case == "fsdp" else "ddp"
        with scenario.observing_errors():
            scenario.observe(**fit(make, strategy=strategy, **gpus))
