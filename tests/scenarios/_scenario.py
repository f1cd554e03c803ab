"""The first import of every scenario. It sets up the variant, and collects the observations of every rank.

A scenario is a small user program. It uses only Lightning's public API. This module replaces the lines that a user
would write by hand: the namespace to import, the ``import lightning_patches`` of the shim variant, and a way to record
observations. ``tests/support/variants.py`` starts the program once per variant, each time in a new process.
"""

import os

if os.environ.get("SCENARIO_SHIM") == "1":
    import lightning_patches  # noqa: F401  the one line that a user adds on top of a script

import atexit
import contextlib
import importlib
import json
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator

import torch

NAMESPACE = os.environ.get("SCENARIO_NAMESPACE", "lightning")
CASE = os.environ.get("SCENARIO_CASE", "")
ONE_CARD = os.environ.get("SCENARIO_ONE_CARD") == "1"
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "default_root_dir": os.environ.get("SCENARIO_OUT", tempfile.gettempdir()),
}
"""Options of a Trainer that runs on the CPU and writes nothing."""
torch.set_num_threads(1)
warnings.filterwarnings("ignore", message=".*pkg_resources.*")


def pytorch(module: str = "") -> ModuleType:
    """Import ``lightning.pytorch`` or ``pytorch_lightning``, or a module of it."""
    root = "lightning.pytorch" if NAMESPACE == "lightning" else "pytorch_lightning"
    return importlib.import_module(f"{root}.{module}" if module else root)


def __getattr__(name: str) -> Any:
    """Import ``pl``, which is ``lightning.pytorch`` or ``pytorch_lightning``, or ``BoringModel`` at its first use."""
    if name == "pl":
        return pytorch()
    if name == "BoringModel":
        return pytorch("demos.boring_classes").BoringModel
    raise AttributeError(name)


def fabric(module: str = "") -> ModuleType:
    """Import ``lightning.fabric`` or ``lightning_fabric``, or a module of it."""
    root = "lightning.fabric" if NAMESPACE == "lightning" else "lightning_fabric"
    return importlib.import_module(f"{root}.{module}" if module else root)


def is_1x() -> bool:
    return pytorch().__version__.startswith("1.")


def precision(name: str) -> Any:
    """Return the release's name for a precision of 2.x."""
    in_1x = {"64-true": 64, "32-true": 32, "16-mixed": 16, "bf16-mixed": "bf16"}
    return in_1x[name] if is_1x() else name


def tuner(trainer: Any) -> Any:
    """Return the Tuner of a Trainer."""
    return pytorch("tuner.tuning").Tuner(trainer)


def boring_model() -> Any:
    """Return BoringModel, in 1.x without the hooks that need an output of each step."""
    model = pytorch("demos.boring_classes").BoringModel
    hooks = ("training_epoch_end", "validation_epoch_end", "test_epoch_end")
    return type("BoringModel", (model,), dict.fromkeys(name for name in hooks if hasattr(model, name)))


def trainer(**options: Any) -> Any:
    """Create a Trainer that runs on the CPU and writes no files, unless ``options`` or a checkpoint callback do so.

    With one real GPU, two ranks share it. NCCL refuses that, but a group with a backend for CUDA tensors only
    (``cuda:gloo``) has the same restriction. Lightning gets the usual name "gloo", so that it does not use gloo's mean,
    which fails for the integers in which it counts batches.
    """
    if is_1x() and options.get("strategy") == "auto":  # which 1.8 does not know
        del options["strategy"]
    if ONE_CARD and options.get("accelerator") == "gpu" and options.get("devices") == 2:
        card = torch.device("cuda", 0)
        strategy = pytorch("strategies").DDPStrategy(parallel_devices=[card, card], process_group_backend="cuda:gloo")
        options = {**options, "devices": "auto", "strategy": strategy}
        torch.distributed.get_backend = lambda group=None: "gloo"
    callbacks = options.get("callbacks") or []
    kinds = pytorch("callbacks")  # 1.6 has no Checkpoint
    for callback in callbacks if isinstance(callbacks, list) else [callbacks]:
        if isinstance(callback, getattr(kinds, "Checkpoint", kinds.ModelCheckpoint)):
            options.setdefault("enable_checkpointing", True)
    return pytorch().Trainer(**{**QUIET, **options})


@atexit.register
def _leave_process_group() -> None:
    """Destroy the process group: torch 2.13's gloo aborts 1 in 20 interpreters that exit with one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("LOCAL_RANK", "0"))


_observed: dict = {}


def observe(**facts: Any) -> None:
    """Record observations of this rank. Tensors become lists of exact values; later calls add to earlier ones."""
    _observed.update({name: _plain(value) for name, value in facts.items()})
    out = os.environ.get("SCENARIO_OUT")
    text = json.dumps(_observed, sort_keys=True)
    if out is None:
        print(f"rank {rank()}: {text}", flush=True)
        return
    path = Path(out) / f"rank{rank()}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


@contextlib.contextmanager
def observing_errors() -> Iterator[None]:
    """Record the error that ends the block, as a user reads it, and raise it again."""
    try:
        yield
    except BaseException as error:
        observe(error=f"{type(error).__name__}: {error}")
        raise


@contextlib.contextmanager
def observing_warnings() -> Iterator[None]:
    """Record the warnings of this package in the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            ours = [str(w.message) for w in caught if w.category.__name__ == "LightningPatchesWarning"]
            observe(warnings=ours)


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [v.hex() if isinstance(v, float) else v for v in value.detach().cpu().flatten().tolist()]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value.hex()
    return value if isinstance(value, (str, int, bool, type(None))) else repr(value)
