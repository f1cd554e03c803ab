"""Submodules of a module that ``fabric.setup`` wrapped are called directly, without DDP. Each part of a case is run
twice: as users write it (``container``), and as the maintainers recommend (``recommended``), with the student set up
alone. Its gradients, or its return value, are observed. A part without ``usage`` runs once. Two ranks. Cases:
``access``, ``training``, ``options``, ``gan``, ``user_model``, ``silence``, ``misuse``, ``cuda``, ``single``,
``older_torch``, ``healthy``, ``some_ranks``, ``alone``, ``late``; several with a comma between them."""

from _expect import bug, whole_run


def seen(result, part, what="container"):
    """Return the observations of each rank for one part of the scenario."""
    return [rank[part][what] for rank in result.observations]


def _by_usage(usage):
    """Return a function that selects the observations of a usage, for parts with both usages."""
    return lambda observations: [
        {name: seen[usage] for name, seen in rank.items() if "recommended" in seen} for rank in observations
    ]


EXPECT = [
    bug(
        ["access", "gan"],
        stock=whole_run(
            lambda result: _by_usage("container")(result.observations) != _by_usage("recommended")(result.observations)
        ),
        compare=_by_usage("container"),
        compare_like=_by_usage("recommended"),
        needs=("torch:Tensor.register_post_accumulate_grad_hook",),
    )
]

import copy
import gc
import inspect
import io
import pickle
import time
import weakref
from collections.abc import Container, Hashable, Iterable, Sized

import _scenario as scenario
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Fabric = scenario.fabric().Fabric
PARTS: dict = {}


def part(case):
    def register(function):
        PARTS.setdefault(case, {})[function.__name__] = function
        return function

    return register


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder(x))

    def loss(self, x):
        return self(x).pow(2).mean()


class Pair(nn.Module):
    """A container with methods."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = Student(), frozen(Student())

    def forward(self, x):
        return self.student(x)

    def loss(self, x):
        return (self.student(x) - self.teacher(x)).pow(2).mean()


def frozen(module):
    return module.requires_grad_(False)


def pair(student=Student):
    torch.manual_seed(1)
    return nn.ModuleDict({"student": student(), "teacher": frozen(Student())})


def data(step=0, rank=None):
    rank = scenario.rank() if rank is None else rank
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * step + rank)).to(fabric.device)


def gradients(module, names=""):
    found = {n: p.grad for n, p in module.named_parameters() if p.requires_grad}
    return {n: "none" if g is None else g.to_dense() if g.is_sparse else g for n, g in found.items() if names in n}


def mean_square(output):
    return output.pow(2).mean()


def with_options(**options):
    other = Fabric(accelerator=ACCELERATOR, devices=2, strategy=scenario.fabric("strategies").DDPStrategy(**options))
    other.launch()
    return other


# -------------------------------------------------------------------- every way to reach a part of the module


@part("access")
def attribute(usage):
    models = pair()
    if usage == "recommended":
        student = fabric.setup_module(models["student"])
        fabric.backward(mean_square(student(data())))
    else:
        wrapped = fabric.setup_module(models)
        fabric.backward(mean_square(wrapped.student(data())))
    return gradients(models["student"])


@part("older_torch")
@part("access")
def item(usage):
    models = pair()
    if usage == "recommended":
        return attribute(usage)
    wrapped = fabric.setup_module(models)
    fabric.backward(mean_square(wrapped["student"](data())))
    assert "student" in wrapped and "nobody" not in wrapped and list(wrapped) == ["student", "teacher"]
    return gradients(models["student"])


@part("access")
def nested_path(usage):
    models = pair()
    if usage == "recommended":
        encoder = fabric.setup_module(models["student"].encoder)
        fabric.backward(mean_square(encoder(data())))
    else:
        wrapped = fabric.setup_module(models)
        fabric.backward(mean_square(wrapped.student.encoder(data())))
    return gradients(models["student"].encoder)


@part("access")
def method_of_child(usage):
    models = pair()
    if usage == "recommended":
        return attribute(usage)
    wrapped = fabric.setup_module(models)
    fabric.backward(wrapped.student.loss(data()))
    return gradients(models["student"])


@part("access")
def method_of_root(usage):
    torch.manual_seed(1)
    models = Pair()
    if usage == "recommended":
        student, teacher = fabric.setup_module(models.student), fabric.to_device(models.teacher)
        fabric.backward((student(data()) - teacher(data())).pow(2).mean())
    else:
        wrapped = fabric.setup_module(models)
        fabric.backward(wrapped.loss(data()))
    return gradients(models.student)


@part("access")
def with_optimizer(usage):
    models = pair()
    student = models["student"]
    optimizer = torch.optim.Adam(student.parameters(), lr=0.1)
    wrapped, optimizer = fabric.setup(student if usage == "recommended" else models, optimizer)
    call = wrapped if usage == "recommended" else wrapped.student
    for step in range(3):
        optimizer.zero_grad()
        fabric.backward(mean_square(call(data(step))))
        optimizer.step()
    return dict(student.named_parameters())


# -------------------------------------------------------------------- ways to train


@part("training")
def accumulation(usage):
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.student
    local = {}
    for step in range(3):
        with fabric.no_backward_sync(wrapped, enabled=step < 2):
            fabric.backward(mean_square(call(data(step))))
        if step == 1:
            local = {f"local {n}": g.clone() for n, g in gradients(student).items()}
    return {**local, **gradients(student)}


@part("training")
def accumulation_with_sync(usage):
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.student
    for step in range(3):
        fabric.backward(mean_square(call(data(step))))
    return gradients(student)


@part("training")
def two_forwards(usage):
    models = pair()
    student = models["student"]
    if usage == "recommended":

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.student = student

            def forward(self, first, second):
                return mean_square(self.student(first)) + self.student(second).sin().sum()

        both = fabric.setup_module(Both())
        fabric.backward(both(data(0), data(1)))
    else:
        wrapped = fabric.setup_module(models)
        fabric.backward(mean_square(wrapped.student(data(0))) + wrapped.student(data(1)).sin().sum())
    return gradients(student)


class Normed(Student):
    def __init__(self):
        super().__init__()
        self.encoder.append(nn.BatchNorm1d(8))


@part("training")
def batch_norm(usage):
    models = pair(Normed)
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.student
    for step in range(2):
        student.zero_grad()
        fabric.backward(mean_square(call(data(step))))
    with torch.no_grad():
        evaluated = wrapped.eval()(data(9, 0)) if usage == "recommended" else wrapped.eval().student(data(9, 0))
    return {**gradients(student), **dict(student.named_buffers()), "evaluated": evaluated}


@part("training")
def root_and_child_by_turns(usage):
    torch.manual_seed(1)
    models = Pair()
    wrapped = fabric.setup_module(models)
    found = {}
    for step in range(4):
        models.zero_grad()
        call = wrapped if usage == "recommended" or step % 2 else wrapped.student
        fabric.backward(mean_square(call(data(step))))
        found.update({f"{step} {n}": g.clone() for n, g in gradients(models.student).items()})
    return found


@part("training")
def set_up_twice(usage):
    """The student is set up alone and in the container: no reduction while the called one is under no_backward_sync."""
    models = pair()
    student = models["student"]
    container = fabric.setup_module(models) if usage == "container" else None
    alone = fabric.setup_module(student)
    found = {}
    for step in range(3):
        with fabric.no_backward_sync(alone, enabled=step == 0):
            call = container.student if container is not None and step == 2 else alone
            fabric.backward(mean_square(call(data(step))))
        found.update({f"{step} {n}": g.clone() for n, g in gradients(student).items()})
    return found


@part("training")
def sparse_embedding(usage):
    torch.manual_seed(1)
    models = nn.ModuleDict({"table": nn.Embedding(10, 3, sparse=True), "other": nn.Linear(2, 2)})
    table = models["table"]
    indices = torch.tensor([1, 2, 2 + RANK, 7], device=fabric.device)
    wrapped = fabric.setup_module(table if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.table
    fabric.backward(mean_square(call(indices)))
    assert table.weight.grad.is_sparse
    return gradients(table)


@part("training")
def several_buckets(usage):
    torch.manual_seed(1)
    big = nn.Sequential(nn.Linear(4, 2**21), nn.Linear(2**21, 2)).to(torch.float32)
    models = nn.ModuleDict({"big": big, "other": nn.Linear(2, 2)})
    wrapped = fabric.setup_module(big if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.big
    fabric.backward(mean_square(call(data())))
    return {n: [g.sum().item(), g.flatten()[:50]] for n, g in gradients(big).items()}


@part("training")
def channels_last_and_double(usage):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Flatten()).to(memory_format=torch.channels_last)
    net.append(nn.Linear(12, 2).double())

    def run(call):
        x = data()[:, :1].expand(8, 16).reshape(8, 1, 4, 4)
        return mean_square(call(x))

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net[2](self.net[1](self.net[0](x)).double())

    wrapped = fabric.setup_module(Whole())
    fabric.backward(run(wrapped if usage == "recommended" else lambda x: wrapped.net[2](wrapped.net[:2](x).double())))
    return gradients(net)


@part("training")
def reentrant_checkpoint(usage):
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    if usage == "recommended":
        fabric.backward(mean_square(wrapped(data())))
    else:
        x = data().requires_grad_()
        hidden = checkpoint(wrapped.student.encoder, x, use_reentrant=True)
        fabric.backward(mean_square(checkpoint(wrapped.student.head, hidden, use_reentrant=True)))
    return gradients(student)


@part("training")
def after_a_failed_backward(usage):
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    if usage == "container":
        hook = student.encoder[0].weight.register_hook(fail)
        try:
            fabric.backward(mean_square(wrapped.student(data(5))))
        except ZeroDivisionError:
            hook.remove()
        student.zero_grad()
    fabric.backward(mean_square((wrapped if usage == "recommended" else wrapped.student)(data())))
    return gradients(student)


def fail(gradient):
    raise ZeroDivisionError


# -------------------------------------------------------------------- options of DDP


def _with(other, usage, steps=2):
    models = pair()
    student = models["student"]
    wrapped = other.setup_module(student if usage == "recommended" else models)
    call = wrapped if usage == "recommended" else wrapped.student
    for step in range(steps):
        student.zero_grad()
        other.backward(mean_square(call(data(step))))
    return gradients(student)


@part("options")
def find_unused_parameters(usage):
    return _with(unused, usage)


@part("options")
def static_graph(usage):
    return _with(with_options(static_graph=True), usage, steps=3)


@part("options")
def static_graph_after_an_unused_forward(usage):
    """A forward with gradients for the output shape, before training through a child."""
    other = with_options(static_graph=True)
    torch.manual_seed(1)
    models = Pair()
    wrapped = other.setup_module(models.student if usage == "recommended" else models)
    if usage == "container":
        wrapped(data(7))
    call = wrapped if usage == "recommended" else wrapped.student
    other.backward(mean_square(call(data())))
    return gradients(models.student)


@part("options")
def gradient_as_bucket_view(usage):
    return _with(with_options(gradient_as_bucket_view=True), usage)


@part("options")
def no_buffer_broadcast(usage):
    other = with_options(broadcast_buffers=False)
    models = pair(Normed)
    student = models["student"]
    wrapped = other.setup_module(student if usage == "recommended" else models)
    other.backward(mean_square((wrapped if usage == "recommended" else wrapped.student)(data())))
    return {**gradients(student), "local": [b.clone() for b in student.buffers()]}


# -------------------------------------------------------------------- a GAN in one container


@part("gan")
def gan(usage):
    torch.manual_seed(1)
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    if usage == "recommended":
        g, d = adversary.setup_module(generator), adversary.setup_module(critic)
    else:
        models = fabric.setup_module(nn.ModuleDict({"g": generator, "d": critic}))
        g, d = models.g, models.d
    g_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
    d_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    found = {}
    for step in range(2):
        fakes = g(data(step))
        d_optimizer.zero_grad()
        fabric.backward(mean_square(d(data(50 + step)) - 1) + mean_square(d(fakes.detach())))
        found.update({f"{step} d {n}": v.clone() for n, v in gradients(critic).items()})
        d_optimizer.step()
        g_optimizer.zero_grad()
        fabric.backward(mean_square(d(fakes) - 1))
        found.update({f"{step} g {n}": v.clone() for n, v in gradients(generator).items()})
        g_optimizer.step()
    return found


# -------------------------------------------------------------------- the user's model is unchanged


@part("user_model")
def copies_and_files():
    models = pair()
    before = (list(models.state_dict()), [n for n, _ in models.named_modules()], sorted(vars(models["student"])))
    wrapped = fabric.setup_module(models)
    fabric.backward(mean_square(wrapped.student(data())))
    after = (list(models.state_dict()), [n for n, _ in models.named_modules()], sorted(vars(models["student"])))
    file = io.BytesIO()
    torch.save(models, file)
    size = file.tell()
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    twin = copy.deepcopy(models)
    for other in (loaded, twin):
        other.zero_grad()
        mean_square(other["student"](data())).backward()  # copies belong to the user: never reduced
    return {
        "unchanged": before == after,
        "size": size,
        "wrapper": list(wrapped.state_dict()) == before[0],
        "attributes": sorted({*vars(models)} | {*vars(models["student"].head)}),
        "hooks": sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in models.modules()),
        "copies": [gradients(m["student"], "head.bias") for m in (loaded, twin)],
    }


@part("user_model")
def freed():
    models = pair()
    wrapped = fabric.setup_module(models)
    fabric.backward(mean_square(wrapped.student(data())))
    ddp, parameter = weakref.ref(wrapped._forward_module), weakref.ref(models["student"].head.weight)
    del wrapped
    gc.collect()
    gone = [ddp() is None]
    if scenario.rank() == 0:  # the wrapper is gone, so this rank may train alone
        mean_square(models["student"](data())).backward()
    del models
    gc.collect()
    return {"wrapper": gone[0], "parameters": parameter() is None}


@part("user_model")
def compiled(usage):
    torch._dynamo.reset()
    models = pair()
    student = models["student"]
    if usage == "recommended":
        wrapped = fabric.setup_module(torch.compile(student, backend="aot_eager"))
        fabric.backward(mean_square(wrapped(data())))
    else:
        wrapped = fabric.setup_module(torch.compile(models, backend="aot_eager"))
        fabric.backward(mean_square(wrapped.student(data())))
    return gradients(student)


@part("user_model")
def compiled_child(usage):
    torch._dynamo.reset()
    models = pair()
    student = models["student"]
    if usage == "recommended":
        return compiled(usage)
    wrapped = fabric.setup_module(models)
    fabric.backward(mean_square(torch.compile(wrapped.student, backend="aot_eager", fullgraph=True)(data())))
    return gradients(student)


@part("user_model")
def compiled_wrapper(usage):
    torch._dynamo.reset()
    torch.manual_seed(1)
    models = Pair()
    wrapped = torch.compile(fabric.setup_module(models), backend="aot_eager")
    found = {}
    for step in range(2):
        models.zero_grad()
        fabric.backward(mean_square(wrapped(data(step))))
        found.update({f"{step} {n}": g.clone() for n, g in gradients(models.student).items()})
    return found


# -------------------------------------------------------------------- no warning


@part("silence")
def legitimate():
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(models)
    with torch.no_grad():
        wrapped.student(data())
    wrapped.eval()
    wrapped.teacher(data())
    wrapped.train()
    x = data().requires_grad_()
    penalty = torch.autograd.grad(mean_square(wrapped.student(x)), x)[0] if RANK == 0 else None
    single = torch.autograd.grad(mean_square(wrapped.student(data())), list(student.parameters()))[0]
    torch.manual_seed(1)
    heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)})

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = heads

        def forward(self, x):
            return self.heads["a"](x), self.heads["b"](x)

    both = fabric.setup_module(Both())
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
    first, second = both(data())
    fabric.backward(mean_square(first))  # half of the gradients that DDP waits for, and then the rest
    fabric.backward(mean_square(second))
    optimizer.step()
    with fabric.no_backward_sync(wrapped):
        fabric.backward(mean_square(wrapped.student(data())))
    return {
        "penalty": penalty is None or bool(penalty.abs().sum() > 0),
        "local": single,
        "no sync": gradients(student),
        "heads": dict(heads.named_parameters()),
    }


# -------------------------------------------------------------------- DDP bypassed on purpose


@part("healthy")
def kept_reference():
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(models)  # noqa: F841  alive, not called
    fabric.backward(mean_square(student(data())))
    return gradients(student)


@part("healthy")
def kept_root():
    torch.manual_seed(1)
    models = Pair()
    wrapped = fabric.setup_module(models)  # noqa: F841  alive, not called
    fabric.backward(mean_square(models(data())))
    return gradients(models.student)


@part("healthy")
def diagnostics_on_rank_zero():
    """Training through DDP, while only rank zero computes a saliency map through ``.module``."""
    torch.manual_seed(1)
    model = Student()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    drawn = []
    for step in range(3):
        optimizer.zero_grad()
        fabric.backward(mean_square(model(data(step))))
        optimizer.step()
        drawn.append(model.head.weight.grad.norm())
        if RANK == 0:
            optimizer.zero_grad()
            x = data(step)[:1].requires_grad_()
            model.module(x).sum().backward()
            drawn.append(x.grad)
    return {"drawn": drawn, **dict(model.module.named_parameters())}


@part("healthy")
def two_backwards_of_one_forward():
    """DDP reduces only the first one; no submodule is called."""
    torch.manual_seed(1)
    wrapped = fabric.setup_module(Student())
    loss = mean_square(wrapped(data()))
    fabric.backward(loss, retain_graph=True)
    (loss * 2).backward()
    return gradients(wrapped.module)


@part("healthy")
def uneven_local_sgd():
    """Each rank has another number of batches, through ``.module``; weights are averaged by hand."""
    torch.manual_seed(1)
    model = Student()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(3 + RANK):
        optimizer.zero_grad()
        mean_square(model.module(data(step))).backward()
        optimizer.step()
    for parameter in model.module.parameters():
        parameter.data = fabric.all_reduce(parameter.data)
    return dict(model.module.named_parameters())


@part("healthy")
def a_head_for_each_rank():
    torch.manual_seed(1)
    heads = nn.ModuleDict({"0": nn.Linear(4, 1), "1": nn.Linear(4, 1)})
    wrapped = fabric.setup_module(heads)
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        mean_square((heads if step else wrapped.module)[str(RANK)](data(step))).backward()
        optimizer.step()
    return dict(heads.named_parameters())


@part("healthy")
def what_the_wrapper_can():
    found = {}
    for model in (Student(), nn.Sequential(nn.Linear(4, 2))):
        wrapped = fabric.setup_module(model)
        found[type(model).__name__] = [
            type(wrapped).__name__,
            *(isinstance(wrapped, kind) for kind in (Iterable, Container, Sized, Hashable)),
            *(hasattr(wrapped, f"__{name}__") for name in ("getitem", "iter", "contains", "len")),
        ]
        for use in (list, iter, lambda model: model[0], lambda model: 0 in model):
            try:
                use(wrapped)
                found[type(model).__name__].append("works")
            except Exception as error:
                found[type(model).__name__].append(f"{type(error).__name__}: {error}")
    return found


@part("healthy")
def part_that_is_only_looked_at():
    """Rank zero logs its weights through the wrapper; each rank trains alone, without DDP."""
    torch.manual_seed(1)
    model = Student()
    wrapped = fabric.setup_module(model)
    if RANK == 0:
        wrapped.head.weight.norm()
    for step in range(1 + RANK):
        fabric.backward(mean_square(wrapped.module(data(step))))
    return gradients(model)


@part("healthy")
def wrapper_is_copied():
    models = pair()
    wrapped = fabric.setup_module(models)
    found = []
    for copied in (copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))):
        try:
            found.append(type(copied(wrapped)).__name__)
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


# -------------------------------------------------------------------- only some ranks


@part("some_ranks")
def own_part_for_each_rank():
    """Call different submodules in each rank through the wrapper, whose gradients must be averaged."""
    torch.manual_seed(1)
    heads = nn.ModuleDict({"a": nn.Linear(4, 1), "b": nn.Linear(4, 1)})
    wrapped = fabric.setup_module(heads)
    for step in range(3):
        mean_square(getattr(wrapped, "ab"[RANK])(data(step))).backward()
    return gradients(heads)


@part("some_ranks")
def one_more_backward_in_rank_zero():
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(models)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for step in range(4):
        if step == 1 and RANK == 0:
            mean_square(wrapped.student(data(9))).backward()
            optimizer.zero_grad()
        optimizer.zero_grad()
        mean_square(wrapped.student(data(step))).backward()
        if step < 3:
            optimizer.step()
    return gradients(student)


@part("late")
def one_rank_comes_late():
    models = pair()
    wrapped = fabric.setup_module(models)
    for step in range(2):
        models.zero_grad()
        if RANK == 1:
            time.sleep(15 * step)
        fabric.backward(mean_square(wrapped.student(data(step))))
    return gradients(models["student"])


@part("late")
def one_rank_comes_late_to_the_first_backward(usage):
    models = pair()
    student = models["student"]
    wrapped = fabric.setup_module(student if usage == "recommended" else models)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    if RANK == 1 and usage == "container":
        time.sleep(15)
    for step in range(2):
        optimizer.zero_grad()
        fabric.backward(mean_square((wrapped if usage == "recommended" else wrapped.student)(data(step))))
        optimizer.step()
    return dict(student.named_parameters())


def _saliency_in_rank_zero(wrapped, optimizer, set_to_none=True):
    if RANK == 0:
        x = data(9).requires_grad_()
        fabric.backward(mean_square(wrapped.student(x)))
        assert x.grad.abs().sum() > 0
        optimizer.zero_grad(set_to_none)


@part("late")
def saliency_in_rank_zero_before_training(usage):
    torch.manual_seed(1)
    models = Pair()
    wrapped, optimizer = fabric.setup(models, torch.optim.SGD(models.student.parameters(), lr=0.1))
    if usage == "container":
        _saliency_in_rank_zero(wrapped, optimizer)
    for step in range(2):
        optimizer.zero_grad()
        fabric.backward(mean_square(wrapped(data(step))))
        optimizer.step()
    return dict(models.student.named_parameters())


@part("alone")
def saliency_in_rank_zero(usage):
    """Train through DDP, while only rank zero computes saliency maps through the wrapper."""
    torch.manual_seed(1)
    models = Pair()
    wrapped, optimizer = fabric.setup(models, torch.optim.SGD(models.student.parameters(), lr=0.1))
    for step in range(6):
        optimizer.zero_grad()
        with fabric.no_backward_sync(wrapped, enabled=step == 3):
            fabric.backward(mean_square(wrapped(data(step))))
        fabric.clip_gradients(wrapped, optimizer, max_norm=0.5)
        optimizer.step()
        optimizer.zero_grad(step < 2)
        if usage == "container":
            _saliency_in_rank_zero(wrapped, optimizer, set_to_none=step % 2 == 0)
    return dict(models.student.named_parameters())


@part("alone")
def root_then_child(usage):
    """Train through DDP first, then by a part, whose gradients are clipped. Rank zero is slower in one step."""
    torch.manual_seed(1)
    models = Pair()
    wrapped, optimizer = fabric.setup(models, torch.optim.SGD(models.student.parameters(), lr=0.1))
    for step in range(6):
        optimizer.zero_grad(set_to_none=step < 4)
        call = wrapped if usage == "recommended" or step % 3 == 0 else wrapped.student
        for micro in range(2):
            with fabric.no_backward_sync(wrapped, enabled=micro == 0):
                fabric.backward(mean_square(call(data(10 * step + micro))))
        if step % 2:
            fabric.clip_gradients(wrapped, optimizer, max_norm=0.1)
        optimizer.step()
    return dict(models.student.named_parameters())


# -------------------------------------------------------------------- warnings for unsupported cases


@part("misuse")
def methods_under_autocast():
    """Lightning still refuses the call, since the method would run without autocast."""
    mixed = Fabric(accelerator=ACCELERATOR, devices=2, strategy="ddp", precision="bf16-mixed")
    mixed.launch()
    wrapped = mixed.setup_module(Pair())
    return wrapped.loss(data()).dtype


# -------------------------------------------------------------------- other devices and torch versions


@part("cuda")
def fsdp():
    other = Fabric(strategy="fsdp", devices=2, accelerator=ACCELERATOR)
    other.launch()
    torch.manual_seed(1)
    wrapped = other.setup_module(Student())
    other.backward(mean_square(wrapped(data())))
    return [p.grad for p in wrapped.parameters()]


@part("single")
def on_one_device(usage):
    torch.manual_seed(1)
    models = Pair()
    wrapped = fabric.setup_module(models)
    fabric.backward((models if usage == "recommended" else wrapped).loss(data()))
    return gradients(models.student)


@part("cuda")
def on_cuda(usage):
    return {"gradients": attribute(usage), "training": with_optimizer(usage), "batch_norm": batch_norm(usage)}


@part("older_torch")
def hooks_on_accumulators(usage):
    return {"gradients": attribute(usage), "training": with_optimizer(usage), "freed": freed()}


def observe_part(name, function):
    seen = {}
    usages = ("recommended", "container") if inspect.signature(function).parameters else ("container",)
    for usage in usages:
        with scenario.warnings.catch_warnings(record=True) as caught:
            scenario.warnings.simplefilter("always")
            try:
                seen[usage] = scenario._plain(function(usage) if len(usages) > 1 else function())
            except Exception as error:
                seen[usage] = {"error": f"{type(error).__name__}: {error}"}
        said = [
            str(w.message) for w in caught if w.category.__name__ in ("LightningPatchesWarning", "PossibleUserWarning")
        ]
        seen[f"{usage} warnings"] = said
        fabric.barrier()
    scenario.observe(**{name: seen})


if __name__ == "__main__":
    ACCELERATOR = "cuda" if scenario.CASE == "cuda" else "cpu"
    if scenario.CASE == "older_torch":  # torch 2.0 has no hook that runs after a gradient has been accumulated
        del torch.Tensor.register_post_accumulate_grad_hook
    fabric = Fabric(strategy="ddp", devices=1 if scenario.CASE == "single" else 2, accelerator=ACCELERATOR)
    fabric.launch()
    RANK = scenario.rank()
    if fabric.world_size > 1:
        unused = with_options(find_unused_parameters=True)
        adversary = with_options(broadcast_buffers=False)
    for case in scenario.CASE.split(","):
        for name, function in PARTS[case].items():
            observe_part(name, function)
