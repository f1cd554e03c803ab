"""Two ranks on the CPU that train with :class:`GradientSyncCheck`. Cases: ``fabric``, ``sharded``, ``trainer``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scenarios"))
import _scenario as scenario
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

Fabric, pl = scenario.fabric().Fabric, scenario.pytorch()
CASE = scenario.CASE or "fabric"

import copy
import os
import pickle
import warnings

os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"  # the stock variant has the check, but no patches
from lightning_patches.ranks.gradient_sync_check import GradientSyncCheck, GradientSyncError

del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]  # else rank 1 of the shim variant would inherit it and be stock


def seen(differences):
    return [[d.kind, d.name, d.step, d.equal_at, d.ranks, d.missing] for d in differences]


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def data(step=0):
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(10 * step + scenario.rank()))


def run_fabric():
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    submodules = {name: of_submodule(name) for name in ("warn", "raise", "setup")}
    scenario.observe(
        submodules=submodules, legitimate=legitimate(), found=found(), pickled=pickled(), one_step=bitwise(),
        dropped=dropped(), shapes=shapes_in_fabric(), outcomes=outcomes(),
    )  # fmt: skip


def of_submodule(how):
    """Issue 20293: call a submodule directly."""
    check = GradientSyncCheck(every_n_steps=2, action="raise" if how == "raise" else "warn")
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp", callbacks=[check])
    fabric.launch()
    models = nn.ModuleDict({"student": network(), "teacher": network().requires_grad_(False)})
    optimizer = torch.optim.SGD(models["student"].parameters(), lr=0.1)
    if how == "setup":
        wrapped, optimizer = fabric.setup(models, optimizer)
    else:
        wrapped, optimizer = fabric.setup_module(models), fabric.setup_optimizers(optimizer)
    error, said = "", []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for step in range(3):
                optimizer.zero_grad()
                fabric.backward(wrapped.student(data(step)).pow(2).mean())
                optimizer.step()
        except GradientSyncError as raised:
            error = str(raised)
        said = [str(w.message) for w in caught if w.category.__name__ == "LightningPatchesWarning"]
    return {"differences": seen(check.differences), "error": error, "warnings": said}


def dropped():
    """Free modules and optimizers at different times in the ranks, as garbage collectors do."""
    check = GradientSyncCheck(every_n_steps=2, action="raise")
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp", callbacks=[check])
    fabric.launch()

    def prepare():
        module = network()
        return fabric.setup(module, torch.optim.SGD(module.parameters(), lr=0.1))

    kept = [prepare(), prepare()]
    for step in range(8):
        module, optimizer = kept[0]
        optimizer.zero_grad()
        fabric.backward(module(data(step)).pow(2).mean())
        optimizer.step()
        if step == 3 and scenario.rank() == 1:
            del kept[1]
        if step == 5:
            # Rank 1 may reuse the id of an optimizer that has stepped, while rank 0 gets a new id.
            del module, optimizer
            old = kept[0] if scenario.rank() == 0 else None
            kept[0] = None
            kept[0] = prepare()
            del old
    return sum_of_ranks(scenario.rank() + 1)


def shapes_in_fabric():
    """Use models with different shapes, without DDP, which would refuse them."""
    seen_by_how = {}
    for how in ("setup", "setup_optimizers"):
        check = GradientSyncCheck(action="raise")
        fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp", callbacks=[check])
        fabric.launch()
        module = nn.Linear(2 + scenario.rank(), 2)
        if how == "setup":
            check.watch(module)
        optimizer = fabric.setup_optimizers(torch.optim.SGD(module.parameters(), lr=0.1))
        module(torch.ones(1, 2 + scenario.rank())).sum().backward()
        try:
            optimizer.step()
        except GradientSyncError as error:
            seen_by_how[how] = [str(error), seen(error.differences)]
    return seen_by_how


def outcomes():
    """Observe the results of ``check()``, also for a difference that was found before."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    results = {}
    check = GradientSyncCheck(action=lambda new: None)
    strayed = network()
    results["equal"] = check.check(strayed).outcome
    with torch.no_grad():
        strayed[2].bias += scenario.rank()
    results["different"] = [check.check(strayed).outcome, check.check(strayed).outcome]
    results["new"] = [len(check.differences), len(check.check(strayed))]
    results["shapes"] = GradientSyncCheck(action=lambda new: None).check(nn.Linear(2 + scenario.rank(), 2)).outcome
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sharded = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
        results["sharded"] = GradientSyncCheck().check(sharded).outcome
    return results


class Odd(nn.Module):
    """A module with every kind of parameter that DDP synchronizes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(20, 4, sparse=True)
        self.used, self.unused, self.sometimes = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.scalar = nn.Parameter(torch.tensor(0.5))
        self.precise = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.short = nn.Parameter(torch.ones(5, dtype=torch.bfloat16))
        self.large = nn.Parameter(torch.ones(3, 4096 + 7))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x, words):
        y = self.used(x + self.words(words).mean(0))
        if scenario.rank() == 0:
            y = y + self.sometimes(x)
        return y.mean() * self.scalar + self.precise.sum() + self.short.sum().float() + self.large.mean()


def legitimate():
    """Make allowed or apparent differences, which must not be found."""
    model = DistributedDataParallel(Odd(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    check = GradientSyncCheck(action="raise")
    results = []
    for step in range(3):
        optimizer.zero_grad()
        words = torch.tensor([scenario.rank(), 2 + step])
        with model.no_sync():
            model(data(step), words).backward()
        model(data(step), words).backward()
        results += check.check(model, optimizer, step)
        optimizer.step()
    model(data() * float("nan"), words).backward()
    results += check.check(model, optimizer, 3)
    # NaN with different bits, and the two zeros.
    model.module.large.grad.view(-1)[:2] = torch.tensor([float("nan"), 0.0])
    if scenario.rank():
        model.module.large.grad.view(-1)[:1].view(torch.int32).fill_(0x7FC01234)
        model.module.large.grad.view(-1)[1] = -0.0
    results += check.check(model, optimizer, 4)
    return seen(results)


def sum_of_ranks(number):
    total = torch.tensor([number])
    torch.distributed.all_reduce(total)
    return int(total)


def found():
    """Make real differences, each with a new check."""
    me = scenario.rank()
    results = {}

    def look(name, module, **options):
        results[name] = seen(GradientSyncCheck(action=lambda new: None, **options).check(module))

    embedding = nn.Embedding(5000, 4)
    with torch.no_grad():
        embedding.weight.zero_()
    embedding(torch.tensor([7 + me])).sum().backward()  # ones, in another row
    look("moved", embedding)
    embedding.weight.grad = embedding.weight.grad.to_sparse()
    look("moved_sparse", embedding)
    module = network()
    if me == 0:
        module[0].bias.grad = torch.zeros(8)
    look("none", module)
    module = network().requires_grad_(False)
    with torch.no_grad():
        module[2].bias[1] += me
    look("frozen", module)
    look("gradients_only", module, parameters=False)
    # In an accumulation window gradients differ, but their optimizer does not step now.
    ddp = DistributedDataParallel(network())
    with ddp.no_sync():
        ddp(data()).sum().backward()
    other = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    results["not_of_this_optimizer"] = seen(GradientSyncCheck(action="raise").check(ddp, other))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        look("shapes", nn.Linear(2 + me, 2))
    results["shapes_said"] = [str(w.message) for w in caught]
    # One rank has nothing to compare, or compares less: no rank waits for the other.
    look("nothing", nn.Linear(2, 2) if me else nn.Tanh())
    look("options", nn.Linear(2, 2), gradients=bool(me))
    try:
        GradientSyncCheck(action="raise").check(nn.Linear(2 + me, 2))
    except GradientSyncError as error:
        results["shapes_raised"] = str(error)
    results.update(of_buffers_and_state())
    results["in_step"] = sum_of_ranks(me + 1)
    return results


def of_buffers_and_state():
    """Compare buffers and optimizer state only if enabled."""
    module = nn.BatchNorm1d(2)
    module.running_mean += scenario.rank()
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    if scenario.rank():
        optimizer.state[module.weight]["exp_avg"] += 1
    found = {}
    for name in ("buffers", "optimizer_state", "parameters"):
        options = {
            "gradients": False,
            "parameters": name == "parameters",
            **({name: True} if name != "parameters" else {}),
        }
        found[name] = seen(GradientSyncCheck(action=lambda new: None, **options).check(module, optimizer))
    return found


def pickled():
    check = GradientSyncCheck(every_n_steps=7)
    copies = [pickle.loads(pickle.dumps(check)), copy.deepcopy(check)]
    loaded = scenario.pytorch("callbacks").Callback
    return [
        isinstance(c, GradientSyncCheck) and isinstance(c, loaded) and c.every_n_steps == 7 for c in [check, *copies]
    ]


def bitwise():
    """Change one bit of one value."""
    module = nn.Linear(300, 300)
    with torch.no_grad():
        module.weight.fill_(1.0)
        if scenario.rank():
            module.weight[17, 5] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
        module.bias.zero_()
    return seen(GradientSyncCheck(action=lambda new: None).check(module))


def run_sharded():
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = GradientSyncCheck(action="raise").check(
            FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
        )
        part = network()
        fully_shard(part[0])
        with torch.no_grad():
            part[2].bias += scenario.rank()
        second = GradientSyncCheck(action=lambda new: None).check(part)
        third = GradientSyncCheck(action="raise").check(fully_shard(network()))
    said = [str(w.message) for w in caught if w.category.__name__ == "LightningPatchesWarning"]
    scenario.observe(fsdp=seen(first), partly=seen(second), wholly=seen(third), warnings=said)


class Model(pl.LightningModule):
    def __init__(self, strays):
        super().__init__()
        self.strays, self.network = strays, network()

    def training_step(self, batch, batch_idx):
        if self.strays and self.global_step == 3 and self.global_rank == 1:
            with torch.no_grad():
                self.network[2].bias += 1
        return self.network(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def run_trainer():
    results = {}
    for strays in (False, True):
        check = GradientSyncCheck(every_n_steps=2)
        trainer = scenario.trainer(
            accelerator="cpu", devices=2, strategy="ddp", max_steps=6, accumulate_grad_batches=2, callbacks=check
        )
        generator = torch.Generator().manual_seed(3)
        loader = torch.utils.data.DataLoader(torch.randn(64, 4, generator=generator), batch_size=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.fit(Model(strays), loader)
        said = [str(w.message) for w in caught if w.category.__name__ == "LightningPatchesWarning"]
        results[str(strays)] = {"steps": trainer.global_step, "differences": seen(check.differences), "warnings": said}
    scenario.observe(**results)


if __name__ == "__main__":
    {"fabric": run_fabric, "sharded": run_sharded, "trainer": run_trainer}[CASE]()
    torch.distributed.destroy_process_group()  # else gloo may abort at the interpreter's exit
