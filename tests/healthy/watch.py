"""What a program of the differential trial writes down while it runs.

Each line is a section and what was seen: ``hook``, ``logged``, ``gradients``, ``weights``, ``file``, ``warning``,
``message``, ``print``, ``saw`` (what the program itself looks at) and ``end``. There is a file per script and rank; a
line is on disk before the program goes on, so that one which hangs leaves what it did.

Tensors are written as a digest of their bits. Masked, because it differs from run to run: paths of the working
directory and of temporary ones, line numbers, addresses in memory and
what is pickled with them, durations, dates, ports, process numbers, random
file names, what progress bars draw, and warnings of torch about the use of its own trees. The first lines of an error
stand for it, where the rest is a traceback.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import resource
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

if os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401


import torch
import torch.distributed as dist

if os.environ["SCENARIO_NAMESPACE"] == "lightning":
    import lightning.pytorch as pl
    from lightning.pytorch.loggers.logger import Logger
else:
    import pytorch_lightning as pl
    from pytorch_lightning.loggers.logger import Logger

torch.manual_seed(0)  # for what a program makes while it is imported
CWD = os.getcwd()
LIGHTNING = str(Path(pl.__file__).parents[1 if pl.__name__ == "pytorch_lightning" else 2])
MASKS = [
    (re.compile(f"({re.escape(os.path.realpath(CWD))}|{re.escape(CWD)})/"), ""),  # relative or absolute, it is the same
    (re.compile(re.escape(os.path.realpath(CWD)) + "|" + re.escape(CWD)), "<cwd>"),
    (re.compile(re.escape(LIGHTNING)), "<lightning>"),
    (re.compile(r"/tmp/[\w./-]+"), "<tmp>"),
    (re.compile(r"\.py:\d+"), ".py:<line>"),
    (re.compile(r"0x[0-9a-f]+"), "0x<address>"),
    (re.compile(r"\b[A-Za-z0-9+/]{40,}={0,2}"), "<base64>"),  # a pickled tensor: it holds addresses
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\d+(\.\d+)? ?(s|sec|seconds|ms|it/s)\b"), "<duration>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*"), "<time>"),
    (re.compile(r"\[?(localhost|127\.0\.0\.1)\]?:\d+"), "<host>"),
    (re.compile(r"(?i)\b(port|pid)[ =:]+\d+"), r"\1 <number>"),
]


def masked(text: object) -> str:
    line = str(text).partition("\n\nfrom user code:")[0]
    for pattern, instead in MASKS:
        line = pattern.sub(instead, line)
    return line.replace("\n", "\\n")


def note(section: str, text: object) -> None:
    """Write a line."""
    rank = str(dist.get_rank()) if dist.is_initialized() else os.environ.get("LOCAL_RANK", "0")
    path = Path(os.environ["HEALTHY_OUT"], f"{Path(sys.argv[0]).stem}.{rank}")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))  # a disk that is full is so for the program
    os.write(descriptor, f"{section} {masked(text)}\n".encode())
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    os.close(descriptor)


def saw(name: str, value: Any) -> None:
    """What the program looks at by itself."""
    note("saw", f"{name} = {shown(value)}")


def digest(*tensors: Optional[torch.Tensor]) -> str:
    """The bits of tensors, with type and shape, in short."""
    found = hashlib.sha1()
    for tensor in tensors:
        if tensor is None:
            found.update(b"none")
            continue
        tensor = tensor.detach().cpu().contiguous()
        found.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:12]


def shown(value: Any) -> str:
    """A value in one line, to the last bit."""
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__name__}({digest(*value.state_dict().values())})"
    if isinstance(value, torch.Tensor):
        inside = repr(value.item()) if value.numel() == 1 else f"{tuple(value.shape)} {digest(value)}"
        return f"tensor({inside}, {str(value.dtype)[6:]}{', grad' if value.requires_grad else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(map(shown, value))}]"
    if isinstance(value, (int, float, str, bool, type(None), Path)):
        return repr(value) if not isinstance(value, Path) else f"Path({str(value)!r})"
    if isinstance(value, BaseException):
        text = str(value)
        if isinstance(value, torch.multiprocessing.ProcessRaisedException):  # ours may be among its traceback's frames
            text = text.rstrip().rpartition("\n")[2]
        return f"{type(value).__name__}: {text}"
    return type(value).__name__


def weights(module: torch.nn.Module) -> str:
    return digest(*module.parameters(), *module.buffers())


def gradients(module: torch.nn.Module) -> str:
    """Digest of each parameter's gradient."""
    return " ".join(f"{n}={'-' if p.grad is None else digest(p.grad)}" for n, p in module.named_parameters())


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The parts of a checkpoint, each with its name."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, f"{name}.{masked(key)}")
    elif isinstance(value, (list, tuple)) and value:
        for index, part in enumerate(value):
            yield from leaves(part, f"{name}.{index}")
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, torch.nn.Module, type)):
        yield name, type(value).__name__
        yield from leaves(vars(value), name)
    else:
        yield name, shown(value)


def files() -> None:
    """Every file below the working directory, and what it contains."""
    for path in sorted(Path(CWD).rglob("*")):
        if path.suffix in (".py", ".pyc") or path.name == "__pycache__":
            continue
        name = path.relative_to(CWD)
        if path.is_symlink():
            note("file", f"{name} -> {os.readlink(path)}")
        elif path.suffix == ".ckpt" and path.is_file():
            note("file", f"{name}")
            for key, value in leaves(torch.load(path, map_location="cpu", weights_only=False)):
                if key != ".pytorch-lightning_version" and ".time_elapsed." not in key:
                    note("file", f"{name} {key} = {value}")
        elif path.suffix in (".csv", ".yaml", ".json", ".txt") and path.is_file():
            for line in path.read_text().splitlines() or [""]:
                note("file", f"{name} {line}")
        else:
            note("file", f"{name}{'/' if path.is_dir() else ''}")


# ---------------------------------------------------------------------------------------------- hooks and logged values

HOOKS = """setup teardown on_fit_start on_fit_end on_train_batch_start on_train_batch_end on_train_epoch_start
on_train_epoch_end on_validation_epoch_start on_validation_epoch_end on_test_epoch_start on_test_epoch_end
on_predict_epoch_start on_predict_epoch_end on_validation_batch_start on_validation_batch_end
on_test_batch_start on_test_batch_end on_predict_batch_start on_predict_batch_end on_train_start on_train_end
on_validation_start on_validation_end on_test_start on_test_end on_predict_start on_predict_end
on_save_checkpoint on_load_checkpoint on_before_backward on_after_backward on_before_optimizer_step
on_before_zero_grad
"""
CALLBACK_HOOKS = [*HOOKS.split(), "on_sanity_check_start", "on_sanity_check_end", "on_exception"]
MODULE_HOOKS = [*HOOKS.split(), "on_validation_model_eval", "on_validation_model_train"]


def _see(owner: str, hook: str, trainer: Any, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    if trainer is None:  # a model that is loaded by itself
        note("hook", f"{owner}.{hook}")
        return
    where = f"step {trainer.global_step} epoch {trainer.current_epoch} {trainer.state.fn} {trainer.state.stage}"
    given = [shown(a) for a in arguments if not isinstance(a, dict) or "state_dict" not in a]
    given += [f"{key}={shown(value)}" for key, value in named.items()]
    note("hook", f"{owner}.{hook}({', '.join(given)}) {where} {'stops' if trainer.should_stop else ''}".rstrip())
    if owner == "Watch":
        if hook == "on_before_optimizer_step":
            note("gradients", gradients(module))
        if hook in ("on_train_batch_end", "on_train_epoch_end", "on_validation_start", "on_fit_start", "on_train_end"):
            rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
            note("weights", f"{weights(module)} rates {rates} training {module.training}")
        if hook.endswith("_epoch_end") or hook in ("on_train_end", "on_validation_end", "on_train_batch_end"):
            for name in ("callback_metrics", "logged_metrics", "progress_bar_metrics"):
                found = dict(getattr(trainer, name))
                found.pop("v_num", None)
                note("logged", f"{name} at {hook} {where} {shown(found)}")


def _callback_hook(name: str) -> Callable[..., None]:
    def hook(self: Any, trainer: Any, module: Any, *arguments: Any, **named: Any) -> None:
        _see("Watch", name, trainer, module, arguments, named)

    return hook


_methods = {name: _callback_hook(name) for name in CALLBACK_HOOKS}
Watch = type("Watch", (pl.Callback,), {"__module__": __name__, **_methods})
"""A callback that notes every hook, and at some of them weights, gradients, learning rates and metrics."""


def _module_hook(name: str) -> Callable[..., Any]:
    def hook(self: Any, *arguments: Any, **named: Any) -> Any:
        _see("Module", name, self._trainer, self, arguments, named)
        return getattr(super(Hooks, self), name)(*arguments, **named)

    return hook


class Hooks:
    """Mixed into a LightningModule, notes every hook that the module itself is told of."""


for _name in MODULE_HOOKS:
    setattr(Hooks, _name, _module_hook(_name))


class Log(Logger):
    """A logger that notes what it is given."""

    name, version, save_dir = "watch", 0, "logs"  # type: ignore[assignment]

    def log_metrics(self, metrics: Any, step: Any = None) -> None:
        note("logged", f"to the logger, step {step} {shown(dict(metrics))}")

    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        note("logged", f"hyperparameters {shown(dict(params))}")


# ------------------------------------------------------------------------------------------------------------- programs


class _Messages(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] != "lightning_patches":
            note("message", f"{record.levelname} {record.getMessage()}")


class _Printed:
    def write(self, text: str) -> int:
        if text.strip() and "\r" not in text and "it/s" not in text and "%|" not in text:  # no progress bars
            note("print", text.strip("\n"))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def _warned(message: Any, category: type, *_: Any, **__: Any) -> None:
    if "treespec" not in str(message):  # of torch, once or more often, depending on what else has been imported
        note("warning", f"{category.__name__} {message}")


def prepare() -> None:
    """From now on, this process notes warnings and messages, too."""
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", module="(torch|torchmetrics|jsonargparse|pkg_resources)")
    warnings.showwarning = _warned
    for name in ("lightning", "lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [_Messages()]
        logger.propagate = False
    sys.stdout = _Printed()  # type: ignore[assignment]
    torch.manual_seed(1)


def run(main: Callable[[], None]) -> None:
    """Run a program's ``main``, and note how it ends and which files it leaves."""
    if os.environ.get("HEALTHY_STAND_IN"):
        from tests.healthy import stand_ins

        getattr(stand_ins, os.environ["HEALTHY_STAND_IN"])()
    prepare()
    torch.set_num_threads(1)
    try:
        main()
        note("end", "returns")
    except BaseException as error:
        note("end", f"raises {shown(error)}")
        raise
    finally:
        if os.environ.get("LOCAL_RANK", "0") == "0":
            files()
