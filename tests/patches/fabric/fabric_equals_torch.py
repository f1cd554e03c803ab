"""Fabric beside plain PyTorch. Cases: ``sum``, ``mean``, ``max`` (all_reduce on two ranks), ``device`` (of a CPU tensor
beside a GPU), ``clip`` (of one of two modules), ``inputs`` (of bf16-mixed), ``epoch`` (of a sampler; ``epochs``: not
set), ``dtype`` (of a wrapper). With ``torch``, what is right: plain PyTorch, or a CUDA tensor."""

from _expect import bug, same

EXPECT = [
    bug("sum", "reductions are exact", stock={"int": -294967296}, like="sum torch"),
    bug(
        "mean", "reductions are exact", stock={"int": 0, "bool": 0, "tensor": [0, 1]}, like="mean torch", since="2.0.9"
    ),
    bug("max", "reductions are exact", stock={"float": 16777216.0}, like="max torch"),
    bug("device", stock={"given": 1.0}, like="device torch", simulated_cuda=True),
    bug("clip", "gradients of the module are clipped", stock={"gradients": [0.6, 0.8]}, like="clip torch"),
    bug("inputs", stock={"output": 0.0, "filled": 0}, like="inputs torch"),
    bug("epoch", stock={"epoch": 0}, like="epoch torch"),
    bug("dtype", stock={"dtype": "torch.float32"}, like="dtype torch"),
    same("epochs", "epoch of an untouched sampler", on="2.6.6"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

KIND, _, TORCH = scenario.CASE.partition(" ")
ON_RANKS = KIND in ("sum", "mean", "max", "device")


class Model(torch.nn.Linear):
    def forward(self, x, time, filled):
        filled.append(time)
        return super().forward(x).float().squeeze() * 0 + (time - 1234.5)


def reduced(fabric, value, op):
    if not TORCH:
        result = fabric.all_reduce(value, reduce_op=op)
    else:
        result = torch.as_tensor(value, dtype=torch.float64 if op == "mean" else None)
        torch.distributed.all_reduce(
            result, {"max": torch.distributed.ReduceOp.MAX}.get(op, torch.distributed.ReduceOp.SUM)
        )
        result = result / 2 if op == "mean" else result
    return result.tolist()


def on_ranks(fabric):
    fabric.launch()
    rank = fabric.global_rank
    if KIND == "sum":
        return {"int": reduced(fabric, 2_000_000_000, KIND)}
    if KIND == "max":
        return {"float": reduced(fabric, torch.tensor(16777217.0, dtype=torch.float64) if TORCH else 16777217.0, KIND)}
    if KIND == "mean":
        tensor = torch.tensor([rank, 1])
        return {
            "int": reduced(fabric, rank, KIND),
            "bool": reduced(fabric, rank == 1, KIND),
            "tensor": reduced(fabric, tensor, KIND),
        }
    given = torch.ones(1, device=fabric.device if TORCH else "cpu")
    result = fabric.all_reduce(given, reduce_op="sum")
    return {"given": given.item(), "result": result.item()}


def clipped(fabric):
    a, b = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    (30 * a.weight.sum() + 40 * b.weight.sum()).backward()
    if TORCH:
        torch.nn.utils.clip_grad_norm_(a.parameters(), 1.0)
    else:
        fabric.clip_gradients(fabric.setup_module(a), fabric.setup_optimizers(optimizer), max_norm=1.0)
    return {"gradients": [round(net.weight.grad.item(), 3) for net in (a, b)]}


def forward(fabric):
    model, filled = Model(1, 1), []
    with torch.autocast("cpu", torch.bfloat16):
        output = (model if TORCH else fabric.setup_module(model))(torch.ones(1, 1), torch.tensor(1236.0), filled)
    return {"output": output.item(), "filled": len(filled)}


def epoch(fabric):
    data = list(range(12))
    sampler = DistributedSampler(data, num_replicas=2, rank=0)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    loader = loader if TORCH else fabric.setup_dataloaders(loader)
    if KIND == "epoch":
        sampler.set_epoch(3)
    orders = [[batch.tolist() for batch in loader] for _ in range(1 if KIND == "epoch" else 3)]
    return {"orders": orders, "epoch": sampler.epoch}


def dtype(fabric):
    model = torch.nn.Linear(1, 1)
    return {"dtype": str(model.double().weight.dtype if TORCH else fabric.setup_module(model).dtype)}


if __name__ == "__main__":
    ranks = {"devices": 2, "strategy": "ddp"} if ON_RANKS else {"devices": 1}
    precision = {"inputs": "bf16-mixed", "dtype": "64-true"}.get(KIND, "32-true")
    fabric = scenario.fabric().Fabric(accelerator="gpu" if KIND == "device" else "cpu", precision=precision, **ranks)
    run = {"clip": clipped, "inputs": forward, "epoch": epoch, "epochs": epoch, "dtype": dtype}.get(KIND, on_ranks)
    scenario.observe(**run(fabric))
