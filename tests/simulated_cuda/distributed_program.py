"""Two processes with one CUDA device each and the backend "nccl".

    SIMULATED_CUDA=1 PYTHONPATH=tests/simulated_cuda/site \\
        python tests/simulated_cuda/distributed_program.py

Also runs without the simulation, on a machine with two GPUs. Any failed assertion ends both
processes and gives a non-zero exit status; a process that waits for too long ends itself.
"""

import datetime
import faulthandler
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import torchmetrics
except ImportError:
    torchmetrics = None

WORLD_SIZE = 2
PATIENCE_SECONDS = 300
NO_CPU_BACKEND = "No backend type associated with device type cpu"


def refused(function, text, kind=RuntimeError):
    """The whole message is compared, not only a part of it."""
    try:
        function()
    except kind as error:
        assert str(error) == text, f"expected {text!r}, got {str(error)!r}"  # noqa: PT017
    else:
        raise AssertionError(f"nothing was raised, expected: {text}")


def gathered(tensor):
    """Return the tensors of all ranks."""
    tensors = [torch.empty_like(tensor) for _ in range(WORLD_SIZE)]
    dist.all_gather(tensors, tensor.contiguous())
    return tensors


def agree(tensor):
    first, second = gathered(tensor)
    return torch.equal(first, second)


def gradients(module):
    return torch.cat([parameter.grad.flatten() for parameter in module.parameters()])


def weights(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def the_group_is_nccl(rank, device):
    assert dist.get_backend() == "nccl"
    assert dist.is_nccl_available()
    assert dist.get_default_backend_for_device("cuda") == "nccl"


def collectives(rank, device):
    ours = torch.full((2,), rank + 1.0, device=device)
    total = ours.clone()
    dist.all_reduce(total)
    assert total.tolist() == [3, 3] and total.device == device

    assert [tensor.tolist() for tensor in gathered(ours)] == [[1, 1], [2, 2]]

    joined = torch.empty(4, device=device)
    dist.all_gather_into_tensor(joined, ours)
    assert joined.tolist() == [1, 1, 2, 2]

    sent = ours.clone()
    dist.broadcast(sent, src=1)
    assert sent.tolist() == [2, 2]

    reduced = ours.clone()
    dist.reduce(reduced, dst=0)
    if rank == 0:
        assert reduced.tolist() == [3, 3]

    part = torch.empty(1, device=device)
    dist.reduce_scatter_tensor(part, ours.clone())
    assert part.tolist() == [3]

    if rank == 0:
        dist.send(ours, dst=1)
    else:
        received = torch.empty(2, device=device)
        dist.recv(received, src=0)
        assert received.tolist() == [1, 1]


def averages(rank, device):
    average = torch.full((2,), rank + 1.0, device=device)
    dist.all_reduce(average, op=dist.ReduceOp.AVG)
    assert average.tolist() == [1.5, 1.5]
    whole = torch.full((2,), 2 * rank + 2, device=device)
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    assert whole.tolist() == [3, 3] and whole.dtype == torch.int64


def short_floats(rank, device):
    for dtype in (torch.float16, torch.bfloat16):
        total = torch.full((2,), rank + 1.0, device=device, dtype=dtype)
        average = total.clone()
        (result,) = dist.all_reduce(total, async_op=True).get_future().wait()
        assert result.tolist() == total.tolist() == [3, 3] and total.dtype == dtype
        dist.all_reduce(average, op=dist.ReduceOp.AVG)
        assert average.tolist() == [1.5, 1.5] and average.dtype == dtype


def work_objects(rank, device):
    tensor = torch.ones(2, device=device)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert tensor.tolist() == [2, 2]
    work = dist.all_reduce(tensor, async_op=True)
    (result,) = work.get_future().wait()
    assert result.tolist() == [4, 4] and result.device == device


def barriers_and_groups(rank, device):
    dist.barrier()
    dist.barrier(device_ids=[rank])
    group = dist.new_group([0, 1])
    tensor = torch.ones(1, device=device)
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == 2
    alone = [dist.new_group([member]) for member in range(WORLD_SIZE)][rank]
    dist.all_reduce(tensor, group=alone)
    assert tensor.item() == 2


def objects(rank, device):
    everyone = [None] * WORLD_SIZE
    dist.all_gather_object(everyone, {"rank": rank})
    assert everyone == [{"rank": 0}, {"rank": 1}]
    sent = [f"from {rank}"]
    dist.broadcast_object_list(sent, src=0)
    assert sent == ["from 0"]


def cpu_tensors_are_refused(rank, device):
    tensor = torch.ones(2)
    outputs = [torch.empty(2), torch.empty(2)]
    for collective in (
        lambda: dist.all_reduce(tensor),
        lambda: dist.broadcast(tensor, src=0),
        lambda: dist.all_gather(outputs, tensor),
    ):
        refused(collective, NO_CPU_BACKEND)
    refused(lambda: DistributedDataParallel(nn.Linear(2, 2)), NO_CPU_BACKEND)


def ddp(rank, device):
    for options in (
        {},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"bucket_cap_mb": 0.00001},
    ):
        torch.manual_seed(rank)
        module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        module.to(device)
        parallel = DistributedDataParallel(module, device_ids=[rank], **options)
        optimizer = torch.optim.Adam(parallel.parameters(), lr=0.1)
        for step in range(3):
            torch.manual_seed(100 * rank + step)
            inputs = torch.randn(8, 4)  # on the CPU: DDP moves them because of device_ids
            loss = parallel(inputs).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert module[0].weight.grad.device == device
        assert agree(gradients(module)), options
        assert agree(weights(module)), options
        assert not agree(inputs.to(device)), "the ranks should see different data"

    module.zero_grad()
    with parallel.no_sync():
        parallel(torch.randn(8, 4, device=device) * (rank + 1)).sum().backward()
    assert not agree(gradients(module))


def metrics(rank, device):
    if torchmetrics is None:
        return
    on_device = torchmetrics.MeanMetric().to(device)
    on_device.update(float(rank))
    assert on_device.compute().item() == 0.5
    on_cpu = torchmetrics.MeanMetric()
    on_cpu.update(float(rank))
    refused(on_cpu.compute, NO_CPU_BACKEND)


PARTS = (
    the_group_is_nccl, collectives, averages, short_floats, work_objects, barriers_and_groups, objects,
    cpu_tensors_are_refused, ddp, metrics,
)  # fmt: skip


def main(rank, rendezvous_file):
    # prints the stack of a process that hangs, and ends it
    faulthandler.dump_traceback_later(PATIENCE_SECONDS, exit=True)
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl", init_method=f"file://{rendezvous_file}", rank=rank, world_size=WORLD_SIZE,
        timeout=datetime.timedelta(seconds=PATIENCE_SECONDS),
    )  # fmt: skip
    for part in PARTS:
        part(rank, device)
        if rank == 0:
            print(f"ok   {part.__name__}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    if torch.cuda.device_count() < WORLD_SIZE:
        print(f"needs {WORLD_SIZE} CUDA devices", file=sys.stderr)
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(main, (os.path.join(folder, "rendezvous"),), nprocs=WORLD_SIZE)
    print("all parts passed on both ranks", flush=True)
