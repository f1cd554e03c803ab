"""CUDA behavior that the tests of this project rely on.

The same file runs with the simulation and on a real GPU. Differences show where the
simulation is wrong:

    SIMULATED_CUDA=1 PYTHONPATH=tests/simulated_cuda/site python -m pytest tests/simulated_cuda/conformance.py
    python -m pytest tests/simulated_cuda/conformance.py
"""

import copy
import io
import multiprocessing
import pickle
import re

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

CPU = torch.device("cpu")
FIRST = torch.device("cuda", 0)
SECOND = torch.device("cuda", 1)
SAME_DEVICE = "Expected all tensors to be on the same device"
BOTH = "cuda:0 and cpu!"
WRONG_GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
BAD_FORK = "Cannot re-initialize CUDA in forked subprocess"

on_two_devices = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")

# exact enough to be compared with the CPU
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def torchmetrics():
    return pytest.importorskip("torchmetrics")


def refused(text, kind=RuntimeError):
    return pytest.raises(kind, match=re.escape(text))


def close(actual, expected):
    torch.testing.assert_close(
        torch.as_tensor(actual).cpu().float(), torch.as_tensor(expected).cpu().float(), rtol=0, atol=1e-3
    )


def test_counting_devices_does_not_initialize_cuda():
    # must be the first check, since the others initialize CUDA
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() >= 1
    assert not torch.cuda.is_initialized()


def test_first_tensor_initializes_cuda():
    torch.empty(1, device="cuda")
    assert torch.cuda.is_initialized()


@pytest.mark.parametrize("device", [FIRST, pytest.param(SECOND, marks=on_two_devices)], ids=str)
def test_tensor_goes_from_device_to_device_and_back(device):
    tensor = torch.arange(3.0).to(FIRST).to(device)
    assert tensor.is_cuda and tensor.device == device
    assert tensor.cpu().tolist() == tensor.to(FIRST).tolist() == [0, 1, 2]


@on_two_devices
def test_cuda_without_an_index_is_the_current_device():
    assert torch.empty(2, device="cuda").device == FIRST
    with torch.cuda.device(1):
        assert torch.empty(2, device="cuda").device == SECOND
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    try:
        assert torch.empty(2, device="cuda").device == SECOND and torch.cuda.current_device() == 1
    finally:
        torch.cuda.set_device(0)


def under_a_default_device(call):
    with torch.device("cuda"):
        return call()


def shuffled(loader):
    return lambda: under_a_default_device(lambda: list(loader()))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.empty(2, device="cuda:99"), "invalid device ordinal"),
        (lambda: torch.ones(2, device=FIRST) + torch.ones(2), f"{SAME_DEVICE}, but found at least two devices, {BOTH}"),
        (lambda: torch.ones(2) + torch.ones(2, device=FIRST), f"{SAME_DEVICE}, but found at least two devices, {BOTH}"),
        pytest.param(lambda: torch.ones(2, device=SECOND) + torch.ones(2, device=FIRST),
         f"{SAME_DEVICE}, but found at least two devices, cuda:1 and cuda:0!", marks=on_two_devices),
        (lambda: torch.where(torch.tensor([True], device=FIRST), torch.ones(1), torch.ones(1)), "same device"),
        (lambda: torch.ones(2, device=FIRST).numpy(), "can't convert cuda:0 device type tensor to numpy"),
        (lambda: torch.arange(5)[torch.tensor([1, 2], device=FIRST)],
         "indices should be either on cpu or on the same device as the indexed tensor (cpu)"),
        (lambda: torch.randn(3, device=FIRST, generator=torch.Generator()), WRONG_GENERATOR),
        (lambda: torch.randn(3, generator=torch.Generator(FIRST)),
         "Expected a 'cpu' device type for generator but found 'cuda'"),
        (lambda: under_a_default_device(lambda: torch.randperm(5, generator=torch.Generator())), WRONG_GENERATOR),
        (shuffled(lambda: DistributedSampler(range(4), num_replicas=1, rank=0, shuffle=True)), WRONG_GENERATOR),
        (shuffled(lambda: DataLoader(TensorDataset(torch.ones(4)), shuffle=True)), WRONG_GENERATOR),
    ],
)  # fmt: skip
def test_call_is_refused_with_the_message_of_cuda(call, text):
    with refused(text, (RuntimeError, IndexError, TypeError)):
        call()


def test_cpu_number_goes_with_any_device():
    product = torch.ones(2, device=FIRST) * torch.tensor(3.0)
    assert product.device == FIRST and product.tolist() == [3, 3]


def test_argument_on_another_device_is_named():
    with pytest.raises(RuntimeError) as found:
        nn.Embedding(4, 2).to(FIRST)(torch.tensor([1]))
    newer = f"{SAME_DEVICE}, but got index is on cpu, different from other tensors on cuda:0"
    older = f"{SAME_DEVICE}, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index"
    assert str(found.value).startswith((newer, older))


def assign(tensor, index, values):
    tensor[index] = values


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(lambda cpu, cuda: cpu.add_(cuda), id="add in place"),
        pytest.param(lambda cpu, cuda: cpu[0].add_(cuda[0]), id="add numbers in place"),
        pytest.param(lambda cpu, cuda: nn.Linear(2, 2).to(FIRST)(cpu), id="layer"),
        pytest.param(lambda cpu, cuda: torch.cat([cpu, cuda]), id="cat"),
        pytest.param(lambda cpu, cuda: torch.stack([cuda, cpu]), id="stack"),
        pytest.param(lambda cpu, cuda: torch.stack([cuda[0], cpu[0]]), id="stack of numbers"),
        pytest.param(lambda cpu, cuda: cuda.gather(0, torch.tensor([1])), id="gather"),
        pytest.param(lambda cpu, cuda: torch.equal(cuda, cpu), id="equal"),
        pytest.param(lambda cpu, cuda: assign(cuda, torch.tensor([0, 1], device=FIRST), cpu), id="index assignment"),
        pytest.param(
            lambda cpu, cuda: nn.functional.cross_entropy(torch.randn(2, 4, device=FIRST), cpu.long()), id="loss"
        ),
        pytest.param(lambda cpu, cuda: nn.BatchNorm1d(2)(torch.randn(3, 2, device=FIRST)), id="batch norm"),
    ],
)
def test_operation_across_devices_is_refused(operation):
    with refused(SAME_DEVICE):
        operation(torch.ones(2), torch.ones(2, device=FIRST))


def test_cpu_indices_into_a_cuda_tensor_are_allowed():
    assert torch.arange(5, device=FIRST)[torch.tensor([1, 2])].tolist() == [1, 2]


def test_pinned_memory():
    assert not torch.ones(2).is_pinned()
    pinned = torch.ones(2).pin_memory()
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    assert pinned.to(FIRST, non_blocking=True).tolist() == [1, 1]


def test_deepcopy_and_pickle_keep_the_device():
    tensor = torch.arange(3.0, device=FIRST)
    for twin in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert twin.device == FIRST and twin.tolist() == [0, 1, 2]


def test_saving_keeps_the_device_and_loading_may_change_it():
    file = io.BytesIO()
    torch.save({"tensor": torch.arange(3.0, device=FIRST)}, file)
    for location, expected in ((None, FIRST), ("cpu", CPU), (FIRST, FIRST)):
        file.seek(0)
        tensor = torch.load(file, map_location=location)["tensor"]
        assert tensor.device == expected and tensor.tolist() == [0, 1, 2]


def losses(device, inputs, targets, make_optimizer):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2)).to(device)
    optimizer = make_optimizer(module.parameters())
    inputs, targets = inputs.to(device), targets.to(device)
    values = []
    for _ in range(5):
        loss = nn.functional.mse_loss(module(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        values.append(loss.item())
    assert all(parameter.grad.device == device for parameter in module.parameters())
    return values


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.Adam, {"lr": 0.01}),
        (torch.optim.Adam, {"lr": 0.01, "fused": True}),
    ],
)
def test_training_equals_the_cpu(kind, options):
    generator = torch.Generator().manual_seed(2)
    batch = torch.randn(16, 4, generator=generator), torch.randn(16, 2, generator=generator)
    on_cpu, on_device = (losses(device, *batch, lambda p: kind(p, **options)) for device in (CPU, FIRST))
    close(on_device, on_cpu)


def test_autocast_changes_the_type():
    layer = nn.Linear(2, 2).to(FIRST)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.bfloat16
    with torch.autocast("cuda"):
        assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.float16
    assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.float32


@pytest.mark.parametrize("value", [1.0, float("inf")])
def test_gradient_scaler_steps_if_gradients_are_finite(value):
    layer = nn.Linear(2, 2).to(FIRST)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    before = layer.weight.detach().clone()
    scaler.scale(layer(torch.full((1, 2), value, device=FIRST)).sum()).backward()
    scaler.unscale_(optimizer)
    close(layer.weight.grad, torch.full((2, 2), value))
    scaler.step(optimizer)
    scaler.update()
    close(before - layer.weight, torch.full((2, 2), 0.1 if value == 1 else 0.0))
    assert scaler.get_scale() == (8.0 if value == 1 else 4.0)


def test_compiling_with_the_eager_backend():
    layer = nn.Linear(2, 2).to(FIRST)
    compiled = torch.compile(layer, backend="eager")
    inputs = torch.ones(3, 2, device=FIRST)
    close(compiled(inputs).detach(), layer(inputs).detach())
    compiled(inputs).sum().backward()
    assert layer.weight.grad.device == FIRST


def test_generator_of_the_device_repeats_itself_and_advances():
    def draw(seed):
        generator = torch.Generator(FIRST).manual_seed(seed)
        return [torch.rand(3, device=FIRST, generator=generator).tolist() for _ in range(2)]

    assert draw(1) == draw(1) != draw(2)
    assert draw(1)[0] != draw(1)[1]


def test_manual_seed_seeds_the_device():
    def draw(seed_function):
        seed_function(3)
        return torch.rand(2, device=FIRST).tolist()

    assert draw(torch.manual_seed) == draw(torch.manual_seed)
    assert draw(torch.cuda.manual_seed) == draw(torch.cuda.manual_seed_all)


@pytest.mark.parametrize("device", range(torch.cuda.device_count()))
def test_random_state_of_each_device_can_be_restored(device):
    states = torch.cuda.get_rng_state_all()
    assert len(states) == torch.cuda.device_count()
    assert states[device].device.type == "cpu" and states[device].dtype == torch.uint8
    first = torch.rand(2, device=device).tolist()
    changed = [not torch.equal(one, state) for one, state in zip(torch.cuda.get_rng_state_all(), states)]
    assert changed == [other == device for other in range(len(states))]
    for restore in (
        lambda: torch.cuda.set_rng_state_all(states),
        lambda: torch.cuda.set_rng_state(states[device], device),
    ):
        assert torch.rand(2, device=device).tolist() != first
        restore()
        assert torch.rand(2, device=device).tolist() == first


def _use_cuda_and_report(queue):
    try:
        torch.ones(1, device="cuda")
        queue.put("no error")
    except RuntimeError as error:
        queue.put(str(error))


def test_forked_process_must_not_use_cuda():
    torch.cuda.init()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_use_cuda_and_report, args=(queue,))
    process.start()
    process.join(200)
    process.kill()
    assert process.exitcode == 0 and not queue.empty()
    assert BAD_FORK in queue.get()


def test_forked_loader_worker_works():
    torch.cuda.init()
    loader = DataLoader(
        TensorDataset(torch.arange(8.0)), batch_size=4, num_workers=1, multiprocessing_context="fork", timeout=200
    )
    assert [batch.to(FIRST).tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


class CudaDataset(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return torch.ones(1, device="cuda")


def test_forked_loader_worker_must_not_use_cuda():
    torch.cuda.init()
    loader = DataLoader(CudaDataset(), num_workers=1, multiprocessing_context="fork", timeout=200)
    with refused(BAD_FORK):
        list(loader)


def test_mean_metric_stays_on_its_device(torchmetrics):
    metric = torchmetrics.MeanMetric(sync_on_compute=False).to(FIRST)
    metric.update(torch.tensor(3.0, device=FIRST))
    metric.update(torch.tensor(5.0, device=FIRST))
    assert metric.compute().item() == 4 and metric.compute().device == FIRST
    assert metric.cpu().mean_value.device.type == "cpu"


def test_metric_left_on_the_cpu_is_refused(torchmetrics):
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=3)
    with refused("same device"):
        metric(torch.tensor([0, 1], device=FIRST), torch.tensor([0, 1], device=FIRST))
