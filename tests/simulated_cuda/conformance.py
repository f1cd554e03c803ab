"""About eighty checks of the CUDA behavior that the tests of this project rely on.

The same file runs with the simulation and on a real GPU. Differences show where the
simulation is wrong:

    SIMULATED_CUDA=1 PYTHONPATH=tests/simulated_cuda/site python tests/simulated_cuda/conformance.py
    python tests/simulated_cuda/conformance.py [--json]

Prints each check's name and outcome. Exit status 0: all passed or were skipped; 1: some
failed; 2: there is no CUDA device.
"""

import argparse
import collections
import copy
import io
import json
import multiprocessing
import pickle
import sys
import time
import traceback
import warnings

import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

try:
    import torchmetrics
except ImportError:
    torchmetrics = None

FIRST = torch.device("cuda", 0)
SECOND = torch.device("cuda", 1)
SAME_DEVICE = "Expected all tensors to be on the same device"
WRONG_GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
BAD_FORK = "Cannot re-initialize CUDA in forked subprocess"

Check = collections.namedtuple("Check", "function devices needs")
Result = collections.namedtuple("Result", "name outcome detail seconds")

CHECKS = []


def check(function=None, *, devices=1, needs=None):
    """Mark a function as a check; it passes if it raises nothing.

    ``needs`` is a pair (value, name): the check is skipped if the value is None.
    """
    if function is None:
        return lambda real_function: check(real_function, devices=devices, needs=needs)
    CHECKS.append(Check(function, devices, needs))
    return function


class Refusal:
    """A context whose body must raise an error with this text."""

    def __init__(self, text, kind=RuntimeError):
        self.text = text
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            raise AssertionError(f"nothing was raised, expected: {self.text}")
        if not isinstance(error, self.kind):
            return False
        if self.text not in str(error):
            raise AssertionError(f"expected {self.text!r}, got {str(error)!r}")
        return True


def close(actual, expected, tolerance=1e-3):
    actual, expected = torch.as_tensor(actual).cpu(), torch.as_tensor(expected).cpu()
    difference = (actual.float() - expected.float()).abs().max().item()
    assert difference <= tolerance, f"differs by {difference}: {actual} and {expected}"


# ---------------------------------------------------------------- devices


@check
def asking_for_devices_does_not_initialise_cuda():
    # must be the first check, since the others initialize CUDA
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() >= 1
    assert not torch.cuda.is_initialized()


@check
def a_first_tensor_initialises_cuda():
    torch.empty(1, device="cuda")
    assert torch.cuda.is_initialized()


@check
def a_tensor_goes_to_the_device_and_back():
    tensor = torch.arange(3.0).to(FIRST)
    assert tensor.is_cuda and tensor.device == FIRST
    assert tensor.cpu().tolist() == [0, 1, 2]


@check(devices=2)
def a_tensor_goes_from_device_to_device():
    tensor = torch.arange(3.0, device=FIRST).to(SECOND)
    assert tensor.device == SECOND
    assert tensor.to(FIRST).tolist() == [0, 1, 2]


@check
def cuda_without_an_index_is_the_current_device():
    assert torch.empty(2, device="cuda").device == FIRST


@check(devices=2)
def set_device_changes_the_current_device():
    torch.cuda.set_device(1)
    try:
        assert torch.empty(2, device="cuda").device == SECOND
        assert torch.cuda.current_device() == 1
    finally:
        torch.cuda.set_device(0)


@check(devices=2)
def the_device_context_of_torch_cuda():
    with torch.cuda.device(1):
        assert torch.empty(2, device="cuda").device == SECOND
    assert torch.cuda.current_device() == 0


@check
def an_unknown_device_is_refused():
    with Refusal("invalid device ordinal"):
        torch.empty(2, device="cuda:99")


@check
def factories_follow_a_default_device():
    with torch.device(FIRST):
        module = nn.Linear(2, 2)
        devices = {module.weight.device, torch.tensor([1.0]).device, torch.randperm(3).device}
    assert devices == {FIRST}


@check
def names_and_properties():
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert len(torch.cuda.get_device_capability(0)) == 2
    assert torch.cuda.get_device_properties(0).total_memory > 0
    assert "device='cuda:0'" in repr(torch.ones(2, device=FIRST))


@check
def the_accelerator_is_cuda():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"


@check
def memory_functions_answer():
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_allocated() >= 0
    assert torch.cuda.max_memory_allocated() >= 0
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


@check
def streams_can_be_used():
    stream = torch.cuda.Stream()
    assert stream != torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        tensor = torch.ones(2, device=FIRST)
    torch.cuda.current_stream().wait_stream(stream)
    tensor.record_stream(torch.cuda.current_stream())
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


@check
def events_measure_time():
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(100, device=FIRST).sum()
    end.record()
    torch.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0


# ---------------------------------------------------------------- tensors on different devices


@check
def adding_across_devices_is_refused():
    text = f"{SAME_DEVICE}, but found at least two devices, cuda:0 and cpu!"
    with Refusal(text):
        torch.ones(2, device=FIRST) + torch.ones(2)
    with Refusal(text):
        torch.ones(2) + torch.ones(2, device=FIRST)


@check(devices=2)
def adding_across_two_cuda_devices_is_refused():
    with Refusal(f"{SAME_DEVICE}, but found at least two devices, cuda:1 and cuda:0!"):
        torch.ones(2, device=SECOND) + torch.ones(2, device=FIRST)


@check
def adding_in_place_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.ones(2).add_(torch.ones(2, device=FIRST))


@check
def adding_a_cuda_number_to_a_cpu_number_in_place_is_refused():
    with Refusal(SAME_DEVICE):
        torch.ones(()).add_(torch.ones((), device=FIRST))


@check
def a_cpu_number_goes_with_any_device():
    product = torch.ones(2, device=FIRST) * torch.tensor(3.0)
    assert product.device == FIRST and product.tolist() == [3, 3]


@check
def a_layer_refuses_input_from_elsewhere():
    with Refusal(SAME_DEVICE):
        nn.Linear(2, 2).to(FIRST)(torch.ones(2, 2))


@check
def the_argument_that_is_elsewhere_is_named():
    printed = ""
    try:
        nn.Embedding(4, 2).to(FIRST)(torch.tensor([1]))
    except RuntimeError as error:
        printed = str(error)
    newer = f"{SAME_DEVICE}, but got index is on cpu, different from other tensors on cuda:0"
    older = f"{SAME_DEVICE}, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index"
    assert printed.startswith((newer, older)), printed


@check
def cat_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.cat([torch.ones(2), torch.ones(2, device=FIRST)])


@check
def stack_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.stack([torch.ones(2, device=FIRST), torch.ones(2)])


@check
def stack_of_numbers_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.stack([torch.ones((), device=FIRST), torch.ones(())])


@check
def gather_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.ones(3, device=FIRST).gather(0, torch.tensor([1]))


@check
def equal_across_devices_is_refused():
    with Refusal(SAME_DEVICE):
        torch.equal(torch.ones(2, device=FIRST), torch.ones(2))


@check
def index_assignment_refuses_values_from_elsewhere():
    tensor = torch.zeros(3, device=FIRST)
    with Refusal(SAME_DEVICE):
        tensor[torch.tensor([0, 1], device=FIRST)] = torch.ones(2)


@check
def where_across_devices_is_refused():
    with Refusal("same device"):
        torch.where(torch.tensor([True], device=FIRST), torch.ones(1), torch.ones(1))


@check
def a_loss_refuses_a_target_from_elsewhere():
    with Refusal(SAME_DEVICE):
        nn.functional.cross_entropy(torch.randn(3, 4, device=FIRST), torch.tensor([0, 1, 2]))


@check
def batch_norm_refuses_buffers_from_elsewhere():
    with Refusal(SAME_DEVICE):
        nn.BatchNorm1d(2)(torch.randn(3, 2, device=FIRST))


@check
def numpy_refuses_a_cuda_tensor():
    with Refusal("can't convert cuda:0 device type tensor to numpy", TypeError):
        torch.ones(2, device=FIRST).numpy()


@check
def cpu_indices_into_a_cuda_tensor_are_allowed():
    assert torch.arange(5, device=FIRST)[torch.tensor([1, 2])].tolist() == [1, 2]


@check
def cuda_indices_into_a_cpu_tensor_are_refused():
    text = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
    with Refusal(text, (RuntimeError, IndexError)):
        torch.arange(5)[torch.tensor([1, 2], device=FIRST)]


# ---------------------------------------------------------------- operators


@check
def arithmetic():
    result = torch.ones(2, device=FIRST) + torch.ones(2, device=FIRST)
    assert result.device == FIRST and result.tolist() == [2, 2]


@check
def views_share_memory():
    tensors = []
    for device in ("cpu", FIRST):
        tensor = torch.zeros(4, 4, device=device)
        tensor[1:3, ::2] = 5
        tensor[0].add_(1)
        tensor.t()[3].mul_(2)
        tensor.view(2, 8)[1, 3:5] = 7
        tensors.append(tensor.cpu())
    assert torch.equal(*tensors)


@check
def numbers_out_of_tensors():
    assert torch.tensor(3, device=FIRST).item() == 3
    assert bool(torch.tensor(True, device=FIRST))


@check
def storages():
    storage = torch.UntypedStorage(8, device=FIRST)
    assert storage.device == FIRST and storage.nbytes() == 8
    tensor = torch.arange(4.0, device=FIRST)
    tensor.untyped_storage().resize_(32)
    assert tensor.untyped_storage().nbytes() == 32
    assert tensor.tolist() == [0, 1, 2, 3]


@check
def pinned_memory():
    assert not torch.ones(2).is_pinned()
    pinned = torch.ones(2).pin_memory()
    assert pinned.is_pinned() and pinned.device.type == "cpu"
    assert pinned.to(FIRST, non_blocking=True).tolist() == [1, 1]


@check
def meta_modules_become_real():
    module = nn.Linear(2, 2, device="meta").to_empty(device=FIRST)
    assert module.weight.device == FIRST


# ---------------------------------------------------------------- copying and saving


@check
def deepcopy_and_pickle_keep_the_device():
    tensor = torch.arange(3.0, device=FIRST)
    for twin in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert twin.device == FIRST and twin.tolist() == [0, 1, 2]


@check
def saving_keeps_the_device_and_loading_may_change_it():
    file = io.BytesIO()
    torch.save({"tensor": torch.arange(3.0, device=FIRST)}, file)
    for location, expected in ((None, FIRST), ("cpu", torch.device("cpu")), (FIRST, FIRST)):
        file.seek(0)
        tensor = torch.load(file, map_location=location)["tensor"]
        assert tensor.device == expected and tensor.tolist() == [0, 1, 2]


@check(devices=2)
def a_second_device_can_be_saved_and_mapped():
    file = io.BytesIO()
    torch.save(nn.Linear(2, 2).to(SECOND).state_dict(), file)
    for location, expected in ((None, SECOND), ("cuda:0", FIRST)):
        file.seek(0)
        assert torch.load(file, map_location=location)["weight"].device == expected


@check
def moving_a_module_keeps_its_parameters():
    module = nn.Linear(2, 2)
    weight = module.weight
    assert module.to(FIRST).weight is weight
    assert weight.device == FIRST


@check
def data_can_be_assigned_across_devices():
    parameter = nn.Linear(2, 2).weight
    parameter.data = parameter.data.to(FIRST)
    assert parameter.device == FIRST


# ---------------------------------------------------------------- training


def losses(device, make_module, inputs, targets, make_optimizer):
    torch.manual_seed(0)
    module = make_module().to(device)
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


def trains_as_on_the_cpu(make_module, inputs, targets, make_optimizer=None):
    make_optimizer = make_optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    on_cpu = losses(torch.device("cpu"), make_module, inputs, targets, make_optimizer)
    on_device = losses(FIRST, make_module, inputs, targets, make_optimizer)
    close(on_device, on_cpu)


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))


OPTIMIZERS = {
    "sgd_with_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
}


def _add_optimizer_check(name, make_optimizer):
    def optimizer_check():
        generator = torch.Generator().manual_seed(2)
        inputs = torch.randn(16, 4, generator=generator)
        targets = torch.randn(16, 2, generator=generator)
        trains_as_on_the_cpu(perceptron, inputs, targets, make_optimizer)

    optimizer_check.__name__ = f"training_with_{name}"
    check(optimizer_check)


for _name, _make_optimizer in OPTIMIZERS.items():
    _add_optimizer_check(_name, _make_optimizer)


@check
def dropout_drops():
    kept = (nn.Dropout(0.5)(torch.ones(1000, device=FIRST)) > 0).sum().item()
    assert 300 < kept < 700


@check
def autocast_changes_the_type():
    layer = nn.Linear(2, 2).to(FIRST)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.bfloat16
    with torch.autocast("cuda"):
        assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.float16
    assert layer(torch.ones(2, 2, device=FIRST)).dtype == torch.float32


@check
def a_gradient_scaler_steps():
    layer = nn.Linear(2, 2).to(FIRST)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    before = layer.weight.detach().clone()
    scaler.scale(layer(torch.ones(1, 2, device=FIRST)).sum()).backward()
    scaler.unscale_(optimizer)
    close(layer.weight.grad, torch.ones(2, 2))
    scaler.step(optimizer)
    scaler.update()
    close(before - layer.weight, torch.full((2, 2), 0.1))


@check
def a_gradient_scaler_skips_infinite_gradients():
    layer = nn.Linear(2, 2).to(FIRST)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    before = layer.weight.detach().clone()
    scaler.scale(layer(torch.full((1, 2), float("inf"), device=FIRST)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, layer.weight) and scaler.get_scale() == 4.0


@check
def compiling_with_the_eager_backend():
    layer = nn.Linear(2, 2).to(FIRST)
    compiled = torch.compile(layer, backend="eager")
    inputs = torch.ones(3, 2, device=FIRST)
    close(compiled(inputs).detach(), layer(inputs).detach())
    compiled(inputs).sum().backward()
    assert layer.weight.grad.device == FIRST


# ---------------------------------------------------------------- random numbers


@check
def a_generator_of_the_device_repeats_itself():
    def draw(seed):
        generator = torch.Generator(FIRST).manual_seed(seed)
        return torch.rand(3, device=FIRST, generator=generator).tolist()

    assert draw(1) == draw(1) != draw(2)


@check
def a_generator_of_the_device_advances():
    generator = torch.Generator(FIRST).manual_seed(1)
    draws = [torch.rand(3, device=FIRST, generator=generator).tolist() for _ in range(2)]
    assert draws[0] != draws[1]


@check
def a_cpu_generator_is_refused_on_the_device():
    with Refusal(WRONG_GENERATOR):
        torch.randn(3, device=FIRST, generator=torch.Generator())


@check
def a_cuda_generator_is_refused_on_the_cpu():
    with Refusal("Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randn(3, generator=torch.Generator(FIRST))


@check
def randperm_refuses_a_cpu_generator_under_a_default_device():
    with Refusal(WRONG_GENERATOR), torch.device("cuda"):
        torch.randperm(5, generator=torch.Generator())


@check
def a_distributed_sampler_fails_under_a_default_device():
    sampler = DistributedSampler(range(4), num_replicas=1, rank=0, shuffle=True)
    with Refusal(WRONG_GENERATOR), torch.device("cuda"):
        list(sampler)


@check
def manual_seed_seeds_the_device():
    def draw(seed_function):
        seed_function(3)
        return torch.rand(2, device=FIRST).tolist()

    assert draw(torch.manual_seed) == draw(torch.manual_seed)
    assert draw(torch.cuda.manual_seed) == draw(torch.cuda.manual_seed_all)


@check
def seeds_can_be_asked_for():
    torch.cuda.manual_seed(17)
    assert torch.cuda.initial_seed() == 17
    torch.cuda.seed()
    assert torch.cuda.initial_seed() != 17


@check
def the_random_state_can_be_restored():
    state = torch.cuda.get_rng_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    first = torch.rand(2, device=FIRST).tolist()
    assert torch.rand(2, device=FIRST).tolist() != first
    torch.cuda.set_rng_state(state)
    assert torch.rand(2, device=FIRST).tolist() == first


@check
def all_random_states_can_be_restored():
    states = torch.cuda.get_rng_state_all()
    assert len(states) == torch.cuda.device_count()
    last = torch.device("cuda", len(states) - 1)
    first = torch.rand(2, device=last).tolist()
    torch.cuda.set_rng_state_all(states)
    assert torch.rand(2, device=last).tolist() == first


@check(devices=2)
def devices_have_random_states_of_their_own():
    state = torch.cuda.get_rng_state(0)
    torch.rand(5, device=SECOND)
    assert torch.equal(torch.cuda.get_rng_state(0), state)


@check
def the_cpu_has_a_random_state_of_its_own():
    state = torch.get_rng_state()
    torch.rand(5, device=FIRST)
    assert torch.equal(torch.get_rng_state(), state)


@check
def fork_rng_restores_the_state():
    state = torch.cuda.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="cuda"):
        torch.rand(5, device=FIRST)
        assert not torch.equal(torch.cuda.get_rng_state(), state)
    assert torch.equal(torch.cuda.get_rng_state(), state)


@check
def parameters_can_be_initialised_at_random():
    weight = nn.init.xavier_uniform_(torch.zeros(3, 3, device=FIRST))
    assert weight.abs().sum().item() > 0


# ---------------------------------------------------------------- processes and data loading


def _use_cuda_and_report(queue):
    try:
        torch.ones(1, device="cuda")
        queue.put("no error")
    except RuntimeError as error:
        queue.put(str(error))


@check
def a_forked_process_must_not_use_cuda():
    torch.cuda.init()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_use_cuda_and_report, args=(queue,))
    process.start()
    process.join(200)
    process.kill()
    assert process.exitcode == 0 and not queue.empty()
    assert BAD_FORK in queue.get()


@check
def a_forked_loader_worker_works():
    torch.cuda.init()
    loader = DataLoader(
        TensorDataset(torch.arange(8.0)),
        batch_size=4,
        num_workers=1,
        multiprocessing_context="fork",
        timeout=200,
    )
    assert [batch.to(FIRST).tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


class CudaDataset(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return torch.ones(1, device="cuda")


@check
def a_forked_loader_worker_must_not_use_cuda():
    torch.cuda.init()
    loader = DataLoader(CudaDataset(), num_workers=1, multiprocessing_context="fork", timeout=200)
    with Refusal(BAD_FORK):
        list(loader)


@check
def a_loader_pins_memory():
    (batch,) = next(iter(DataLoader(TensorDataset(torch.ones(2)), batch_size=2, pin_memory=True)))
    assert batch.is_pinned()


@check
def a_shuffling_loader_fails_under_a_default_device():
    loader = DataLoader(TensorDataset(torch.ones(4)), shuffle=True)
    with Refusal(WRONG_GENERATOR), torch.device("cuda"):
        list(loader)


# ---------------------------------------------------------------- torchmetrics

NEEDS_TORCHMETRICS = (torchmetrics, "torchmetrics")


@check(needs=NEEDS_TORCHMETRICS)
def a_mean_metric_stays_on_its_device():
    metric = torchmetrics.MeanMetric(sync_on_compute=False).to(FIRST)
    metric.update(torch.tensor(3.0, device=FIRST))
    metric.update(torch.tensor(5.0, device=FIRST))
    assert metric.compute().item() == 4 and metric.compute().device == FIRST
    assert metric.cpu().mean_value.device.type == "cpu"


@check(needs=NEEDS_TORCHMETRICS)
def an_accuracy_metric_works_and_resets():
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=3, sync_on_compute=False)
    metric.to(FIRST)
    metric(torch.tensor([0, 1, 2], device=FIRST), torch.tensor([0, 1, 1], device=FIRST))
    close(metric.compute(), 2 / 3)
    metric.reset()
    metric(torch.tensor([0], device=FIRST), torch.tensor([0], device=FIRST))
    close(metric.compute(), 1)


@check(needs=NEEDS_TORCHMETRICS)
def a_metric_left_on_the_cpu_is_refused():
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=3)
    with Refusal("same device"):
        metric(torch.tensor([0, 1], device=FIRST), torch.tensor([0, 1], device=FIRST))


# ---------------------------------------------------------------- the program


def run(one_check, device_count):
    name = one_check.function.__name__
    if one_check.devices > device_count:
        return Result(name, "skip", f"needs {one_check.devices} devices, has {device_count}", 0.0)
    if one_check.needs and one_check.needs[0] is None:
        return Result(name, "skip", f"needs {one_check.needs[1]}", 0.0)
    started = time.perf_counter()
    try:
        one_check.function()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} (line {place.lineno}: {place.line})"
        return Result(name, "FAIL", detail, time.perf_counter() - started)
    return Result(name, "ok", "", time.perf_counter() - started)


def main():
    parser = argparse.ArgumentParser(description="Checks what the tests rely on in a CUDA device.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2

    # exact enough to be compared with the CPU
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    warnings.simplefilter("ignore")

    results = []
    for one_check in CHECKS:
        torch.manual_seed(0)
        result = run(one_check, torch.cuda.device_count())
        results.append(result)
        if not arguments.json:
            detail = f": {result.detail}" if result.detail else ""
            print(f"{result.outcome:4} {result.name}{detail}", flush=True)

    counts = collections.Counter(result.outcome for result in results)
    summary = {
        "simulated": "simulated_cuda" in sys.modules,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
        "devices": torch.cuda.device_count(),
        "passed": counts["ok"],
        "failed": counts["FAIL"],
        "skipped": counts["skip"],
    }
    if arguments.json:
        print(json.dumps({**summary, "checks": [result._asdict() for result in results]}, indent=1))
    else:
        print(", ".join(f"{key} {value}" for key, value in summary.items()))
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
