"""Record the behavior of a program while it runs. Imported only in the program's process.

Each line has a section and an observation: ``call`` (of user code, with arguments), ``state`` and ``logged`` (at
hooks), ``saw`` (values that the program reads), ``warning``, ``message``, ``print``, ``file`` and ``end``. Lines are
written to disk at once, so that a hanging program leaves a trace. Tensors are written as a digest of their bits. Values
that differ between runs are masked: paths, addresses, durations, dates, ports, random names.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import logging
import os
import random
import re
import resource
import sys
import threading
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist

LIGHTNING = os.environ["SCENARIO_NAMESPACE"] == "lightning"


def module(name: str) -> Any:
    """Import ``"pytorch.strategies"`` or ``"fabric.loggers"`` from this process's Lightning."""
    part, _, rest = name.partition(".")
    root = f"lightning.{part}" if LIGHTNING else {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"}[part]
    return importlib.import_module(f"{root}.{rest}" if rest else root)


pl = module("pytorch")
fabric = module("fabric") if LIGHTNING or find_spec("lightning_fabric") else None  # 1.8 has Lite instead
IS_1X = pl.__version__.startswith("1.")
MultiprocessingDDP = getattr(module("pytorch.strategies"), "DDPSpawnStrategy" if IS_1X else "DDPStrategy")
"""The strategy that takes ``start_method``."""
Tuner = module("pytorch.tuner.tuning").Tuner
CombinedLoader = module("pytorch.trainer.supporters" if IS_1X else "pytorch.utilities").CombinedLoader


def precision(name: str) -> Any:
    """Return the release's name for a precision of 2.x."""
    in_1x = {"64-true": 64, "32-true": 32, "16-mixed": 16, "bf16-mixed": "bf16", "bf16-true": "bf16"}
    return in_1x[name] if IS_1X else name


CWD = os.path.realpath(os.getcwd())
OUT = os.environ["DIFFERENTIAL_OUT"]
MAIN = os.getpid()
_load = torch.load  # a program may wrap it
MASKS = [
    (re.compile(re.escape(CWD) + "/"), ""),  # the same for relative and absolute paths
    (re.compile(re.escape(CWD)), "<cwd>"),
    (re.compile(re.escape(str(Path(pl.__file__).parents[2 if LIGHTNING else 1]))), "<lightning>"),
    (re.compile(r"/tmp/[\w./-]+"), "<tmp>"),
    (re.compile(r"\.py:\d+"), ".py:<line>"),
    (re.compile(r"0x[0-9a-f]+"), "0x<address>"),
    (re.compile(r"\b[A-Za-z0-9+/]{40,}={0,2}"), "<base64>"),  # a pickled tensor: it holds addresses
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"), "<random>"),
    (re.compile(r"\d+(\.\d+)? ?(s|sec|seconds|ms|it/s)\b|\b\d+:\d\d:\d\d\b"), "<duration>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*"), "<time>"),
    (re.compile(r"\[?(localhost|127\.0\.0\.1)\]?:\d+"), "<host>"),
    (re.compile(r"(?i)\b(port|pid)[ =:]+\d+"), r"\1 <number>"),
]


def masked(text: object) -> str:
    line = str(text).partition("\n\nfrom user code:")[0]
    for pattern, instead in MASKS:
        line = pattern.sub(instead, line)
    return line.replace("\n", "\\n")


def _place() -> str:
    """Return the file for this thread's lines. Lines without a fixed order go into one that is compared sorted."""
    if threading.current_thread() is not threading.main_thread() or torch.utils.data.get_worker_info() is not None:
        return "unordered"
    if dist.is_available() and dist.is_initialized():
        return f"rank.{dist.get_rank()}"
    return f"rank.{os.environ.get('LOCAL_RANK', '0')}" if os.getpid() == MAIN else "unordered"


def note(section: str, text: object) -> None:
    """Write a line."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))  # a simulated full disk affects only the program
    descriptor = os.open(os.path.join(OUT, _place()), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(descriptor, f"{section} {masked(text)}\n".encode())
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def observe(name: str, value: Any = "") -> None:
    """Record a value that the program reads. Passed to each program."""
    note("saw", f"{name} = {shown(value)}")


def digest(*tensors: Any) -> str:
    """Return a short digest of the tensors' bits, types and shapes."""
    found = hashlib.sha1()
    for tensor in tensors:
        if tensor is not None:
            found.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:12]


def tensors_of(root: Any) -> Iterator[Any]:
    """Return parameters and buffers without calling methods, which a program may have overridden."""
    state = vars(root)
    yield from (tensor for name in ("_parameters", "_buffers") for tensor in state.get(name, {}).values())
    for child in state.get("_modules", {}).values():
        if child is not None:
            yield from tensors_of(child)


def weights(root: Any) -> str:
    return digest(*tensors_of(root))


def shown(value: Any) -> str:
    """Return the exact value as one line, without calling the program's classes."""
    kind = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        inside = repr(value.item()) if value.numel() == 1 and not value.is_sparse else f"{tuple(value.shape)}"
        return f"{kind.__name__}({inside} {digest(value)} {str(value.dtype)[6:]}{' grad' * value.requires_grad})"
    if issubclass(kind, torch.nn.Module):
        return f"{kind.__name__}({weights(value)})"
    if kind is dict:
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if kind in (list, tuple):
        return f"{kind.__name__}[{', '.join(map(shown, value))}]"
    if kind in (int, float, str, bool, type(None)):
        return repr(value)
    if isinstance(value, BaseException):
        text = str(value)
        if kind is torch.multiprocessing.ProcessRaisedException:  # its traceback may have frames of our package
            text = text.rstrip().rpartition("\n")[2]
        return f"{kind.__name__}: {text}"
    return kind.__name__


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The parts of a checkpoint, each with its name."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}")
    elif isinstance(value, (list, tuple)) and value:
        for index, part in enumerate(value):
            yield from _leaves(part, f"{name}.{index}")
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, torch.nn.Module, type)):
        yield name, type(value).__name__
        yield from _leaves(vars(value), name)
    else:
        yield name, shown(value)


def _content(path: Path) -> Iterator[str]:
    """Return the content of a file as its reader gets it."""
    if path.suffix == ".ckpt":
        for key, value in _leaves(_load(path, map_location="cpu", weights_only=False)):
            if ".time_elapsed." not in key:
                yield f"{key} = {value}"
    elif path.suffix == ".csv":
        with path.open(newline="") as file:
            yield from (shown(row) for row in csv.DictReader(file))
    elif path.suffix in (".yaml", ".json", ".txt"):
        yield from path.read_text(errors="replace").splitlines()


def names_of_files() -> list[str]:
    return sorted(p.relative_to(CWD).as_posix() for p in Path(CWD).rglob("*") if "__pycache__" not in p.parts)


def note_files() -> None:
    """Record every file below the working directory and its content."""
    for name in names_of_files():
        path = Path(CWD, name)
        note("file", f"{name} -> {os.readlink(path)}" if path.is_symlink() else name)
        if path.is_file() and not path.is_symlink():
            try:
                for line in _content(path):
                    note("file", f"{name} {line}")
            except Exception as error:  # an unreadable file is an observation, too
                note("file", f"{name} cannot be read: {shown(error)}")


class Options:
    """The options of a random program, as attributes. Most have their first value, so that most programs are valid;
    ``likely`` has the options that change more or less often."""

    def __init__(self, seed: int, values: dict[str, tuple[Any, ...]], likely: dict[str, float]) -> None:
        density = random.Random(seed).choice((0.05, 0.1, 0.15, 0.25))
        for name, (usual, *others) in values.items():
            draw = random.Random(f"{seed} {name}")
            other = draw.random() < density * likely.get(name, 1)
            vars(self)[name] = draw.choice(others) if other else usual
            if other:
                note("option", f"{name} {vars(self)[name]}")


class Watch(pl.Callback):  # type: ignore[name-defined]
    """Records weights, rates, gradients, metrics and files at some hooks."""

    def _state(self, trainer: Any, root: Any, hook: str) -> None:
        rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
        step = f"step {trainer.global_step} epoch {trainer.current_epoch} {trainer.state.fn} {trainer.state.stage}"
        stops = f"training {root.training} stops {trainer.should_stop}"
        note("state", f"{hook} {step} weights {weights(root)} rates {rates} {stops}")
        for name in ("callback_metrics", "logged_metrics", "progress_bar_metrics"):
            found = dict(getattr(trainer, name))
            found.pop("v_num", None)
            note("logged", f"{name} {shown(found)}")
        if trainer.world_size == 1 and "Async" not in type(getattr(trainer.strategy, "_checkpoint_io", None)).__name__:
            note("state", f"{hook} files {' '.join(names_of_files())}")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        found = (tensor for tensor in tensors_of(pl_module) if tensor is not None)
        note("state", f"gradients {' '.join('-' if t.grad is None else digest(t.grad) for t in found)}")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self._state(trainer, pl_module, "on_train_batch_end")


def _noted(hook: str) -> Callable[..., None]:
    return lambda self, trainer, pl_module, *_: self._state(trainer, pl_module, hook)


for _hook in ("on_fit_start", "on_train_epoch_end", "on_train_end", "on_validation_start", "on_validation_end"):
    setattr(Watch, _hook, _noted(_hook))


class Log(module("pytorch.loggers.logger").Logger):  # type: ignore[misc]
    """A logger that records its arguments."""

    name, version, save_dir = "own", 0, "logs"

    def log_metrics(self, metrics: Any, step: Any = None) -> None:
        note("logged", f"to the logger, step {step} {shown(dict(metrics))}")

    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        note("logged", f"hyperparameters {shown(dict(params))}")


class _Messages(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note("message", f"{record.levelname} {record.getMessage()}")


class _Printed:
    encoding = "utf-8"

    def write(self, text: str) -> int:
        if text.strip() and "\r" not in text and "it/s" not in text and "%|" not in text:  # no progress bars
            note("print", text.strip("\n"))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def _warned(message: Any, category: type, *_: Any, **__: Any) -> None:
    if "treespec" not in str(message):  # torch warns once or more often, depending on earlier imports
        note("warning", f"{category.__name__} {message}")


def begin() -> None:
    """Start recording warnings, messages and printed lines of this process."""
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", module="(torch|torchmetrics|jsonargparse|pkg_resources)")
    warnings.showwarning = _warned
    for name in (
        "lightning",
        "lightning.pytorch",
        "lightning.fabric",
        "pytorch_lightning",
        "lightning_fabric",
        "lightning_lite",
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [_Messages()]
        logger.propagate = False
    sys.stdout = _Printed()  # type: ignore[assignment]
    torch.manual_seed(1)
    torch.set_num_threads(1)
