# ruff: noqa: E501  (what is written here are lines of programs)
"""The source of a program for Lightning Fabric, from its spec (see ``programs.py``)."""

from __future__ import annotations

import textwrap
from typing import Any

from tests.healthy.programs import Spec, value_of

HEAD = """\
from tests.healthy import watch  # in the arm that has the shim, it imports lightning_patches

import copy, io, os, pickle
from collections.abc import Iterable, Sized
from datetime import timedelta
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset
from LF import Fabric
from LF.strategies import DDPStrategy
"""


def write(spec: Spec) -> dict[str, str]:
    """The scripts of the program by name."""
    get = value_of(spec)
    parts = [HEAD, _net(get), _data(get), _main(get), _launch(get)]
    return {"fabric.py": "\n".join(part for part in parts if part)}


def _net(get: Any) -> str:
    body = {
        "plain": "self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 1)",
        "frozen": "self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 1)\n        self.body.requires_grad_(False)",
        "batch_norm": "self.body, self.head = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), nn.Linear(8, 1)",
    }.get(get("model"), "self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 1)")
    imported, base = ("", "nn.Module")
    if get("lightning_module"):
        imported, base = "from PL import LightningModule\n\n\n", "LightningModule"
    lines = [f"class Net({base}):", "    def __init__(self):", "        super().__init__()", f"        {body}"]
    if get("unused"):
        lines.append("        self.spare = nn.Linear(2, 2)")
    hidden = "checkpoint(self.body, x, use_reentrant=False)" if get("checkpointed") else "self.body(x)"
    lines += ["    def forward(self, x):", f"        return self.head(torch.relu({hidden}))"]
    if get("model") == "with method":
        lines += ["    def score(self, x):", "        return self.head(torch.relu(self.body(x))) * 2"]
        lines += ["    def predict(self, x):", "        return self.forward(x).detach()"]
    return imported + "\n".join(["", *lines, ""])


BUILD = {
    "dict": 'nn.ModuleDict({"body": nn.Linear(8, 8), "head": nn.Linear(8, 1)})',
    "list": "nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 1)])",
    "sequential": "nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))",
    "compiled": 'torch.compile(Net(), backend="eager")',
}


def _data(get: Any) -> str:
    data = get("data")
    text = "\ndef numbers(seed, length=12):\n    generator = torch.Generator().manual_seed(seed)\n"
    text += "    return TensorDataset(torch.randn(length, 8, generator=generator), torch.randn(length, 1, generator=generator))\n"
    if data == "iterable":
        text += textwrap.dedent("""

            class Stream(IterableDataset):
                def __iter__(self):
                    return iter(numbers(3))
            """)
    return text


def _batches(get: Any) -> list[str]:
    """Lines that make ``batches``, a list of pairs."""
    data = get("data")
    if data is None:
        return [f"batches = [[t.to(dtype) for t in numbers(10 * rank + n, 4).tensors] for n in range({get('steps')})]"]
    loader = {
        "loader": "DataLoader(numbers(3), batch_size=2)",
        "shuffled": "DataLoader(numbers(3), batch_size=2, shuffle=True)",
        "own sampler": "DataLoader(numbers(3), batch_size=2, sampler=SequentialSampler(range(12)))",
        "two loaders": "DataLoader(numbers(3), batch_size=2), DataLoader(numbers(4), batch_size=3)",
        "iterable": "DataLoader(Stream(), batch_size=2)",
        "own batches": "DataLoader(numbers(3), batch_sampler=BatchSampler(SequentialSampler(range(12)), 2, False))",
        "workers": "DataLoader(numbers(3), batch_size=2, num_workers=1)",
    }[data]
    lines = [f"loader = fabric.setup_dataloaders({loader})"]
    if data == "two loaders":
        lines.append("loader = loader[0]")
    lines += ["watch.saw('length', len(loader))"] if data != "iterable" else []
    return [*lines, f"batches = [[t.to(dtype) for t in batch] for batch in loader][:{get('steps')}]"]


def _call(get: Any) -> str:
    """An expression: what the model says to ``x``."""
    kind, call = get("model"), get("call")
    if kind in ("dict", "list"):
        body, head = ('["body"]', '["head"]') if kind == "dict" else ("[0]", "[1]")
        if call in ("module", "module parts"):
            return f"model.module{head}(torch.relu(model.module{body}(x)))"
        if get("setup") == "parts":
            return "head(torch.relu(body(x)))"
        return f"net{head}(torch.relu(net{body}(x)))"
    if call == "module":
        return "model.module(x)"
    if call == "before":
        return "net(x)"
    if get("setup") == "parts" and kind != "sequential":
        return "head(torch.relu(body(x)))"
    if call in ("parts", "module parts") and kind not in ("sequential", "compiled"):
        owner = "model" if call == "parts" else "model.module"
        return f"{owner}.head(torch.relu({owner}.body(x)))"
    if call in ("method", "marked"):
        return "model.score(x)"
    if call == "twice":
        return "model(x) + model(x * 2)"
    if call == "functional" and kind not in ("compiled", "batch_norm"):
        return "torch.func.functional_call(model.module, dict(model.module.named_parameters()), (x,))"
    return "model(x)"


def _optimizer(get: Any, parameters: str) -> str:
    return {
        "sgd": f"torch.optim.SGD({parameters}, lr=0.1)",
        "momentum": f"torch.optim.SGD({parameters}, lr=0.1, momentum=0.9)",
        "adam": f"torch.optim.Adam({parameters}, lr=0.1)",
        "two": f"torch.optim.SGD({parameters}, lr=0.1)",
        "adamw fused": f"torch.optim.AdamW({parameters}, lr=0.1, fused=True)",
        "lbfgs": f"torch.optim.LBFGS({parameters}, lr=0.1, max_iter=2)",
    }[get("optimizer")]


def _main(get: Any) -> str:
    if get("rank_only") == "own head":
        return _own_heads(get)
    if get("gan"):
        return _gan(get)
    dtype = {"64-true": "torch.float64", "bf16-true": "torch.bfloat16"}.get(get("precision"), "torch.float32")
    lines = ["rank = fabric.global_rank", f"dtype = {dtype}"]
    if get("seed"):
        lines.append(f"fabric.seed_everything({get('seed')}, workers=True)")
    lines += _make(get)
    lines += _setup(get)
    if get("looks"):
        lines += _looks(get)
    lines += _batches(get)
    lines += _steps(get)
    lines += _collective(get)
    lines += _save(get)
    lines += ['watch.note("weights", f"at the end {watch.weights(net)}")']
    return "\n\ndef main(fabric):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _make(get: Any) -> list[str]:
    build = BUILD.get(get("model"), "Net()")
    made = get("made")
    if made == "init_module":
        return ["with fabric.init_module():", f"    net = {build}"]
    if made == "empty_init":
        return ["with fabric.init_module(empty_init=False):", f"    net = {build}"]
    if made == "decorator":
        return ["@fabric.init_module()", "def make():", f"    return {build}", "", "make()", "net = make()"]
    if made == "twice":
        return ["context = fabric.init_module()", "with context:", f"    net = {build}", "try:", "    with context:",
                "        watch.saw('entered again', nn.Linear(1, 1).weight.dtype)", "except Exception as error:",
                "    watch.saw('entered again', error)"]  # fmt: skip
    return [f"net = {build}"]


def _setup(get: Any) -> list[str]:
    parameters = "[p for p in net.parameters() if p.requires_grad]"
    make = _optimizer(get, parameters)
    setup, kind = get("setup"), get("model")
    lines = []
    two = get("optimizer") == "two" and kind not in ("compiled", "sequential", "frozen")
    body, head = {"dict": ('net["body"]', 'net["head"]'), "list": ("net[0]", "net[1]")}.get(
        kind, ("net.body", "net.head")
    )
    if setup == "parts" and kind not in ("sequential", "compiled", "frozen") and not get("checkpointed"):
        lines += [f"body, head = fabric.setup_module({body}), fabric.setup_module({head})"]
        lines += [f"optimizers = [fabric.setup_optimizers({make})]", "model = head"]
    elif two:
        first, second = (f"torch.optim.SGD({part}.parameters(), lr=0.1)" for part in (body, head))
        lines.append(f"model, *optimizers = fabric.setup(net, {first}, {second})")
    elif setup == "apart":
        lines += ["model = fabric.setup_module(net)", f"optimizers = [fabric.setup_optimizers({make})]"]
    elif setup == "module only":
        lines += ["model = fabric.setup(net)", f"optimizers = [{make}]"]
    elif setup == "no move":
        lines += [f"model, *optimizers = fabric.setup(net, {make}, move_to_device=False)"]
    else:
        lines += [f"model, *optimizers = fabric.setup(net, {make})"]
    if kind in ("dict", "list") and setup != "parts" and get("call") in ("parts", "forward", "twice"):
        lines.append("net_before, net = net, model" if get("call") == "parts" else "")
    if get("call") == "marked":
        lines.append('model.mark_forward_method("score") if hasattr(model, "mark_forward_method") else None')
    if get("scheduler"):
        lines.append("schedulers = [torch.optim.lr_scheduler.StepLR(o, 1, 0.5) for o in optimizers]")
    if get("callbacks"):
        lines.append('fabric.call("on_start", rank=rank)')
    return [line for line in lines if line]


def _steps(get: Any) -> list[str]:
    steps = ["for n, (x, y) in enumerate(batches):"]
    if get("rank_only") == "uneven":
        steps = ["for n, (x, y) in enumerate(batches[:len(batches) - rank]):"]
    if get("raises"):
        steps += ["    if n == 1:", f'        raise {get("raises")}("on purpose")']
    out = _call(get)
    if get("rank_only") == "uneven":
        out = (
            "model.module(x)"
            if get("setup") != "parts" and get("model") not in ("dict", "list")
            else out.replace("net", "net_raw")
        )
    loss = f"nn.functional.mse_loss(({out}).to(y.dtype), y)"
    if get("rank_only") == "uneven" and "net_raw" in out:
        steps = ["net_raw = model.module", *steps]
    backward = {
        "backward": "net.manual_backward(loss)" if get("lightning_module") == "backward" else "fabric.backward(loss)",
        "plain backward": "loss.backward()",
        "autograd.grad": "for p, g in zip(trained, torch.autograd.grad(loss, trained)):\n    p.grad = g",
    }[get("loss")]
    if get("loss") == "autograd.grad":
        steps = ["trained = [p for p in net.parameters() if p.requires_grad]", *steps]
    if get("retain"):
        backward = f"{'fabric.backward(loss, retain_graph=True)' if get('loss') == 'backward' else 'loss.backward(retain_graph=True)'}\n(loss * 2).backward()"
    if get("optimizer") == "lbfgs":
        steps += [
            "    def closure():",
            "        optimizers[0].zero_grad()",
            f"        loss = {loss}",
            "        fabric.backward(loss)",
        ]
        steps += ["        return loss", "    loss = optimizers[0].step(closure)"]
    else:
        body = [f"loss = {loss}", *backward.splitlines()]
        if get("no_sync") and get("accumulate") > 1:
            body = [
                f"with fabric.no_backward_sync(model, enabled=(n + 1) % {get('accumulate')} != 0):",
                *("    " + b for b in body),
            ]
        steps += ["    " + b for b in body]
        steps += ['    watch.note("gradients", watch.gradients(net))']
        after = []
        if get("clip") and get("loss") != "autograd.grad":
            limit = "max_norm=0.1" if get("clip") == "norm" else "clip_val=0.01"
            after.append(f"watch.saw('norm', fabric.clip_gradients(model, optimizers[0], {limit}))")
        after += ["for optimizer in optimizers:", "    optimizer.step()", "    optimizer.zero_grad()"]
        if get("accumulate") > 1:
            after = [f"if (n + 1) % {get('accumulate')} == 0:", *("    " + a for a in after)]
        steps += ["    " + a for a in after]
    if get("scheduler"):
        steps.append("    [s.step() for s in schedulers]")
    steps += ['    watch.note("weights", f"step {n} loss {watch.shown(loss)} {watch.weights(net)}")']
    rank_only = get("rank_only")
    owner = "model.module" if get("model") not in ("dict", "list") and get("setup") != "parts" else "net"
    simple = get("model") not in ("dict", "list") and get("setup") != "parts"
    if simple and rank_only in ("diagnostics", "saliency", "backward of one"):
        steps += ["    if fabric.is_global_zero:", "        probe = x[:2].clone().requires_grad_()"]
        if rank_only == "saliency":
            steps += [f"        watch.saw('saliency', torch.autograd.grad({owner}(probe).sum(), probe)[0])"]
        else:
            where = owner if rank_only == "diagnostics" else "net"
            steps += [f"        {where}(probe).sum().backward()", "        watch.saw('probe', probe.grad)"]
            steps += ["        for optimizer in optimizers:", "            optimizer.zero_grad()"]
    elif simple and rank_only == "evaluation":
        steps += [
            "    if fabric.is_global_zero:",
            "        with torch.no_grad():",
            f"            watch.saw('score', {owner}(x).float().mean())",
        ]
    if get("lightning_module") == "logs":
        steps += [
            "    for name, value in {'int': 1, 'large': 2**24 + n, 'float': 0.1, 'flag': True, 'loss': loss.detach()}.items():",
            "        model.log(name, value)",
            "    net.log_dict({'n': n, 'half': 0.5, 'sum': y.sum()})",
        ]
    elif get("lightning_module") == "optimizers":
        steps += [
            "    for ask in (net.optimizers, net.lr_schedulers, lambda: net.device, lambda: net.global_step, lambda: net.trainer):",
            "        try:",
            "            watch.saw('asked', str(ask()))",
            "        except Exception as error:",
            "            watch.saw('asked', error)",
        ]
    if get("no_grad"):
        steps += ["    with torch.no_grad():", f"        watch.saw('without gradient', {out})"]
    if get("callbacks"):
        steps.append('    fabric.call("on_step", step=n)')
    if get("logger"):
        steps.append('    fabric.log("loss", loss.detach().float(), step=n)')
    if rank_only == "uneven":
        steps += ["for p in net.parameters():", "    p.data = fabric.all_reduce(p.data)"]
    return steps


def _looks(get: Any) -> list[str]:
    return {
        "iterable": [
            "watch.saw('is', [isinstance(model, Iterable), isinstance(model, Sized), callable(model), isinstance(model, nn.Module)])",
            "watch.saw('has', [hasattr(model, n) for n in ('__getitem__', '__iter__', '__len__', '__contains__', 'forward', 'nothing')])",
            "for act in (list, len, lambda m: m[0], lambda m: 'body' in m, lambda m: m.nothing):",
            "    try:",
            "        watch.saw('does', act(model))",
            "    except Exception as error:",
            "        watch.saw('does', error)",
        ],
        "attributes": [
            "watch.saw('types', [type(model).__name__, type(model.module).__name__, [type(m).__name__ for m in model.children()]])",
            "watch.saw('is the same', [model.module is net] + [getattr(model, n, None) is getattr(net, n, 1) for n, _ in net.named_children()])",
            "watch.saw('of children', [type(getattr(model, n)).__name__ for n, _ in net.named_children() if not n.isdigit()])",
            "watch.saw('training', [model.training, model.eval().training, model.train().training])",
        ],
        "state": [
            "state = model.state_dict()",
            "watch.saw('state', {n: v for n, v in state.items()})",
            "watch.saw('loads', str(model.load_state_dict(state)))",
        ],
        "copy": [
            "try:",
            "    other = copy.deepcopy(model.module)",
            "    watch.saw('copy', other)",
            "    watch.saw('hooks of copy', [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in other.modules()])",
            "except Exception as error:",
            "    watch.saw('copy', error)",
        ],
        "pickle": [
            "try:",
            "    buffer = io.BytesIO()",
            "    torch.save(model.module, buffer)",
            "    watch.saw('pickled', torch.load(io.BytesIO(buffer.getvalue()), weights_only=False))",
            "except Exception as error:",
            "    watch.saw('pickled', type(error).__name__)",
        ],
        "names": [
            "watch.saw('names', [[n for n, _ in net.named_parameters()], [n for n, _ in model.named_modules()]])",
            "watch.saw('repr', repr(model))",
            "watch.saw('dir', sorted(n for n in dir(model) if not n.startswith('_')))",
        ],
        "hooks": [
            "model.register_forward_hook(lambda m, i, o: watch.saw('forward hook', type(m).__name__))",
            "model.module.register_full_backward_hook(lambda m, i, o: watch.saw('backward hook', type(m).__name__)) if type(net) is Net else None",
        ],
        "length": [
            "watch.saw('parameters', [len(list(model.parameters())), sum(p.numel() for p in model.parameters())])"
        ],
        "set": [
            "model.mark = 3",
            "watch.saw('set', [model.mark, getattr(model.module, 'mark', None)])",
            "model.requires_grad_(True)",
        ],
    }[get("looks")]


def _collective(get: Any) -> list[str]:
    return {
        None: [],
        "all_gather": ["watch.saw('gathered', fabric.all_gather(torch.tensor([rank, 1.5])))"],
        "gather dict": ["watch.saw('gathered', fabric.all_gather({'a': torch.tensor(rank), 'b': [torch.ones(1)]}))"],
        "all_reduce": [
            "watch.saw('reduced', [fabric.all_reduce(torch.tensor(float(rank)), reduce_op=op) for op in ('mean', 'sum')])"
        ],
        "broadcast": ["watch.saw('broadcast', fabric.broadcast({'rank': rank, 'list': [1, 2]}))", "fabric.barrier()"],
        "first": ["with fabric.rank_zero_first():", "    watch.saw('turn', rank)", "fabric.print('printed')"],
    }[get("collective")]


def _save(get: Any) -> list[str]:
    if not get("save"):
        return []
    state = "{'model': model, 'optimizer': optimizers[0], 'step': 3}"
    if get("setup") == "module only":
        state = "{'model': model, 'step': 3}"
    if get("save") == "objects":
        state = state.replace("3}", "3, 'rate': 0.1, 'names': ['a', 'b']}")
    more = ", filter={'model': lambda name, value: 'bias' not in name}" if get("save") == "filtered" else ""
    lines = [f"state = {state}", f"fabric.save('saved.ckpt', state{more})"]
    load = get("load")
    strict = ", strict=False" if get("save") == "filtered" or load == "not strict" else ""
    if load in ("plain", "not strict"):
        lines += [f"watch.saw('left', fabric.load('saved.ckpt', {{'model': model, 'step': 0}}{strict}))"]
    elif load == "raw":
        lines += ["torch.save(model.module.state_dict(), f'raw{rank}.pt')", "fabric.load_raw(f'raw{rank}.pt', model)"]
    elif load == "new model":
        build = BUILD.get(get("model"), "Net()")
        lines += [
            f"other = fabric.setup_module({build})",
            f"left = fabric.load('saved.ckpt', {{'model': other}}{strict})",
        ]
        lines += ["watch.saw('left', sorted(left))", "watch.saw('loaded', other)"]
    return lines


def _gan(get: Any) -> str:
    lines = f"""
        rank = fabric.global_rank
        torch.manual_seed(rank)
        net = nn.ModuleDict({{"generator": nn.Linear(8, 8), "critic": nn.Linear(8, 1)}})
        generator, first = fabric.setup(net["generator"], torch.optim.Adam(net["generator"].parameters(), lr=0.01))
        critic, second = fabric.setup(net["critic"], torch.optim.Adam(net["critic"].parameters(), lr=0.01))
        for n in range({get("steps")}):
            x = torch.randn(4, 8)
            second.zero_grad()
            loss = critic(generator(x).detach()).mean() - critic(x).mean()
            fabric.backward(loss)
            second.step()
            first.zero_grad()
            loss = -critic(generator(x)).mean()
            fabric.backward(loss)
            watch.note("gradients", watch.gradients(net))
            first.step()
            watch.note("weights", f"step {{n}} loss {{watch.shown(loss)}} {{watch.weights(net)}}")
        """
    return "\n\ndef main(fabric):\n" + textwrap.indent(textwrap.dedent(lines).strip(), "    ") + "\n"


def _own_heads(get: Any) -> str:
    owner = {"module": "model.module", "module parts": "model.module", "before": "net"}.get(get("call"), "net")
    lines = f"""
        rank = fabric.global_rank
        torch.manual_seed(3)
        net = nn.ModuleDict({{"0": nn.Linear(8, 1), "1": nn.Linear(8, 1)}})
        model = fabric.setup_module(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for n in range({get("steps")}):
            x, y = torch.randn(4, 8), torch.randn(4, 1)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss({owner}[str(rank)](x), y)
            loss.backward()
            watch.note("gradients", watch.gradients(net))
            optimizer.step()
        watch.note("weights", watch.weights(net))
        """
    return "\n\ndef main(fabric):\n" + textwrap.indent(textwrap.dedent(lines).strip(), "    ") + "\n"


def _launch(get: Any) -> str:
    flags = []
    if get("unused") == "found":
        flags.append("find_unused_parameters=True")
    if get("static_graph"):
        flags.append("static_graph=True")
    start = {"ddp": "popen", "ddp_fork": "fork", "ddp_spawn": "spawn"}
    strategy = ""
    if get("strategy"):
        more = "".join(f", {flag}" for flag in flags)
        strategy = (
            f', strategy=DDPStrategy(start_method="{start[get("strategy")]}", timeout=timedelta(seconds=45){more})'
        )
    more = f', precision="{get("precision")}"' if get("precision") != "32-true" else ""
    before = ""
    if get("callbacks"):
        before += textwrap.dedent("""
            class Told:
                def on_start(self, rank):
                    watch.saw("told of start", rank)
                def on_step(self, step):
                    watch.saw("told of step", step)
            """)
        more += ", callbacks=[Told()]"
    if get("logger"):
        more += {"csv": ", loggers=[CSVLogger('logs', name='csv')]", "watch": ", loggers=[watch.Log()]"}[get("logger")]
        before = "from LF.loggers import CSVLogger\n" + before
    fabric = f'Fabric(accelerator="cpu", devices={2 if get("strategy") else 1}{strategy}{more})'
    if get("strategy") in ("ddp_fork", "ddp_spawn"):
        text = f"def start():\n    fabric = {fabric}\n    fabric.launch(ranked)\n\n\ndef ranked(fabric):\n    watch.prepare()\n    main(fabric)\n"
    else:
        text = f"def start():\n    fabric = {fabric}\n    fabric.launch()\n    main(fabric)\n"
    return f'{before}\n\n{text}\n\nif __name__ == "__main__":\n    watch.run(start)\n'
