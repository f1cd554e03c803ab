"""The model, its data and ``fit`` inside ``with trainer.init_module():`` on CUDA. Each kind of data is used twice:
first ``outside``, created and used after the block as the maintainers recommend, which is the reference; then
``inside``. Cases: ``ddp`` (two devices), ``one_device``, ``fabric``, the name of one kind of data, or ``contexts``: the
effects of the blocks on a model. Needs two CUDA devices, simulated or real."""

from _expect import bug

EXPECT = [
    bug(
        "ddp",
        stock=lambda seen: "Expected a 'cuda' device type for generator" in str(seen["inside"]["shuffled"]["error"]),
        simulated_cuda=True,
        one_card=True,
        since="2.1.0",
        compare=lambda ranks: [rank["inside"] for rank in ranks],
        compare_like=lambda ranks: [rank["outside"] for rank in ranks],
    ),
    bug(
        "fabric",
        stock=lambda seen: "Expected a 'cuda' device type for generator" in str(seen["inside"]["shuffled"]["error"]),
        simulated_cuda=True,
        one_card=True,
        compare=lambda ranks: [rank["inside"] for rank in ranks],
        compare_like=lambda ranks: [rank["outside"] for rank in ranks],
    ),
]

import contextlib

import _scenario as scenario
import numpy as np
import torch
from _model import Linear
from torch.overrides import _get_current_function_mode_stack
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset, WeightedRandomSampler, random_split

ITEMS = 12


class Numbers(Dataset):
    """Items that are not tensors, as read from a file, so workers can create them on any default device."""

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return index


class Arrays(Numbers):
    """Items that become tensors without a device argument, so that stock workers can pass them on."""

    def __getitem__(self, index):
        return torch.from_numpy(np.array([index]))


class Broken(Numbers):
    def __getitem__(self, index):
        raise KeyError(f"no file for item {index}")


class Unpicklable(Numbers):
    def __getstate__(self):
        raise ValueError("this dataset holds an open file")


class OwnSampler(Sampler):
    """A user's sampler as in tutorials."""

    def __init__(self):
        self.epoch = 0

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(3 + self.epoch)
        self.epoch += 1
        return iter(torch.randperm(ITEMS, generator=generator).tolist())

    def __len__(self):
        return ITEMS


class MixingSampler(OwnSampler):
    """A sampler with a tensor that creates others without a generator. It works if all are on one device."""

    def __init__(self):
        super().__init__()
        self.offset = torch.zeros(ITEMS, dtype=torch.long)

    def __iter__(self):
        order = torch.randperm(ITEMS) + self.offset
        for position in range(ITEMS):
            yield int((order + torch.tensor([0]))[position])


def flat(batch):
    """Return all numbers of a batch of any structure."""
    return batch.reshape(-1) if isinstance(batch, torch.Tensor) else torch.cat([flat(part) for part in batch])


class Model(Linear):
    features, lr = 1, 0.0

    def __init__(self):
        super().__init__()
        self.drawn = {"fit": [], "validate": [], "predict": []}

    def record(self, stage, batch):
        numbers = flat(batch)
        self.drawn[stage] += [int(number) for number in numbers]
        return self.layer(numbers.reshape(-1, 1).float()).pow(2).mean()

    def training_step(self, batch, batch_idx):
        return self.record("fit", batch)

    def validation_step(self, batch, batch_idx):
        self.record("validate", batch)

    def predict_step(self, batch, batch_idx):
        return self.record("predict", batch)


def loaders(data):
    """Return the loaders for training and validation."""
    fixed = TensorDataset(torch.arange(ITEMS))
    if data == "random_split":
        train, val = random_split(fixed, [8, 4])
        return DataLoader(train, 2, shuffle=True), DataLoader(val, 2)
    if data == "weighted":
        weights = [1.0 + number for number in range(ITEMS)]
        sampler = WeightedRandomSampler(weights, ITEMS, generator=torch.Generator().manual_seed(5))
        return DataLoader(fixed, 2, sampler=sampler), DataLoader(fixed, 3, shuffle=True)
    if data == "cycle":
        short, long = TensorDataset(torch.arange(4)), DataLoader(fixed, 2, shuffle=True)
        combined = scenario.pytorch("utilities").CombinedLoader(
            [DataLoader(short, 2, shuffle=True), long], "max_size_cycle"
        )
        return combined, None
    seeded = {"shuffle": True, "generator": torch.Generator("cuda" if "cuda" in data else "cpu").manual_seed(5)}
    dataset, options = {
        "workers": (Numbers(), {"shuffle": True, "num_workers": 1, "persistent_workers": True}),
        "workers_mixing": (Arrays(), {"sampler": MixingSampler(), "num_workers": 1}),
        "loader_generator": (fixed, seeded),
        "cuda_generator": (fixed, seeded),
        "own_sampler": (fixed, {"sampler": OwnSampler()}),
        "broken": (Broken(), {"shuffle": True}),
        "unpicklable": (Unpicklable(), {"shuffle": True, "num_workers": 1, "multiprocessing_context": "spawn"}),
    }.get(data, (fixed, {"shuffle": True}))
    return DataLoader(dataset, 2, **options), None


def use(trainer, model, data):
    train, val = loaders(data)
    if data == "evaluate":
        trainer.validate(model, train, verbose=False)
        trainer.predict(model, train)
        return
    trainer.fit(model, train, val)


def first_line(exception):
    return f"{type(exception).__name__}: {exception}".splitlines()[0]


def attempt(data, devices, inside):
    """Train on ``data`` with new objects. Return the drawn batches and the error, if any."""
    scenario.pl.seed_everything(7)
    options = {"strategy": "ddp"} if devices == 2 else {}
    trainer = scenario.trainer(accelerator="gpu", devices=devices, max_epochs=2, num_sanity_val_steps=0, **options)
    error = model = None
    try:
        with trainer.init_module():
            model = Model()
            if inside:
                use(trainer, model, data)
        if not inside:
            use(trainer, model, data)
    except Exception as exception:
        error = first_line(exception)
    left_at = torch.empty(0).device.type
    return {"drawn": model.drawn, "error": error, "left_at": left_at, "random": torch.rand(1).item()}


def iterate_with_fabric(data, inside):
    """The same with Fabric: two epochs over a loader that Fabric set up, by hand."""
    scenario.pl.seed_everything(7)
    fabric = scenario.fabric().Fabric(accelerator="gpu", devices=1)
    fabric.launch()
    drawn, error = [], None

    def epochs():
        loader = fabric.setup_dataloaders(loaders(data)[0])
        for _ in range(2):
            for batch in loader:
                drawn.extend(int(number) for number in flat(batch))

    try:
        with fabric.init_module():
            torch.nn.Linear(1, 1)
            if inside:
                epochs()
        if not inside:
            epochs()
    except Exception as exception:
        error = first_line(exception)
    return {"drawn": drawn, "error": error, "left_at": torch.empty(0).device.type}


def look_at(context):
    """Return the properties of a model created in a block: device, dtype, initialization, compilation."""
    with context:
        layer = torch.nn.Linear(2, 2)
        compiled = torch.compile(lambda x: x * 2 + torch.ones(2), backend="eager", fullgraph=True)
        found = {
            "weight": [str(layer.weight.device), str(layer.weight.dtype)],
            "initialized": initialized(),
            "compiled": str(compiled(torch.ones(2)).device),
            "modes": len(_get_current_function_mode_stack()),
        }
        try:
            found["generator"] = str(torch.rand(1, generator=torch.Generator()).device)
        except RuntimeError as error:
            found["generator"] = first_line(error)
    found["modes_after"] = len(_get_current_function_mode_stack())
    return found


def initialized():
    """True if the functions of ``torch.nn.init`` have an effect."""
    probe = torch.nn.init.uniform_(torch.zeros(4), 1, 2)
    return "cannot tell" if probe.is_meta else bool(probe.min() >= 1)


class OnMeta(scenario.pl.strategies.SingleDeviceStrategy):
    """Like strategies that move parameters to their device later."""

    @contextlib.contextmanager
    def tensor_init_context(self, empty_init=None):
        with torch.device("meta"):
            yield


def made_by(make):
    return [make().weight.device.type for _ in range(2)]


def forms():
    """Blocks as decorators, and entered more than once. On which device are models made?"""
    found = {}
    for accelerator in ("gpu", "cpu"):
        trainer = scenario.trainer(accelerator=accelerator, devices=1)
        fabric = scenario.fabric().Fabric(accelerator=accelerator, devices=1)
        fabric.launch()

        @trainer.init_module()
        def decorated():
            return torch.nn.Linear(2, 2)

        found[f"{accelerator} decorator"] = made_by(decorated)
        for name in ("init_module", "init_tensor"):
            block = getattr(fabric, name)()

            def in_block(block=block):
                with block:
                    return torch.nn.Linear(2, 2)

            try:
                found[f"{accelerator} {name} twice"] = made_by(in_block)
            except Exception as error:
                found[f"{accelerator} {name} twice"] = first_line(error)
            found[f"{accelerator} {name} extends"] = [isinstance(block, contextlib.ExitStack), callable(block)]
    return found


def contexts():
    gpu = {"accelerator": "gpu", "devices": 1}
    fabric = scenario.fabric().Fabric(**gpu)
    fabric.launch()
    return {
        "cuda": look_at(scenario.trainer(**gpu).init_module()),
        "half": look_at(scenario.trainer(**gpu, precision="16-true").init_module()),
        "empty": look_at(scenario.trainer(**gpu).init_module(empty_init=True)),
        "cpu": look_at(scenario.trainer().init_module()),
        "meta": look_at(scenario.trainer(strategy=OnMeta(device="cpu")).init_module()),
        "fabric": look_at(fabric.init_module(empty_init=True)),
        "fabric_tensor": look_at(fabric.init_tensor()),
    }


ON_TWO_DEVICES = ("shuffled", "workers", "evaluate", "own_sampler")
ON_ONE_DEVICE = (
    "shuffled",
    "loader_generator",
    "cuda_generator",
    "random_split",
    "own_sampler",
    "weighted",
    "cycle",
    "workers",
    "workers_mixing",
    "broken",
    "unpicklable",
)


if __name__ == "__main__":
    if scenario.CASE == "contexts":
        scenario.observe(contexts=contexts(), forms=forms())
    with scenario.observing_warnings():
        for place in ("outside", "inside") if scenario.CASE != "contexts" else ():
            if scenario.CASE == "fabric":
                found = {data: iterate_with_fabric(data, place == "inside") for data in ("shuffled", "workers")}
            elif scenario.CASE == "ddp":
                found = {data: attempt(data, 2, place == "inside") for data in ON_TWO_DEVICES}
            else:
                chosen = ON_ONE_DEVICE if scenario.CASE == "one_device" else (scenario.CASE,)
                found = {data: attempt(data, 1, place == "inside") for data in chosen}
            scenario.observe(**{place: found})
