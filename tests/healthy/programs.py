"""Random legal programs for Lightning's Trainer and Fabric, and their source.

A program is a *spec*: a flat dictionary of options, in which only those stand that are not at their default. So a
simpler program is the same dictionary with one option less. This file knows Lightning's public API, and nothing of our
patches.
"""

from __future__ import annotations

import random
from typing import Any

Spec = dict[str, Any]
Options = dict[str, tuple[Any, ...]]

MAINS = ("train.py", "fabric.py", "resume.py", "evaluate.py")
"""The scripts of a program that are run, in this order."""
RELEASES = ("2.0.9", "2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.2", "2.5.6", "2.6.1", "2.6.6")
"""A program is tried on one of them, its seed says on which."""
OLDEST, OF_OLDEST = "2.0.0", 100_000
"""The release that gets the most patches, several of them alone of these: tried with the seeds from there on."""

# fmt: off
TRAINER: Options = {
    # the loop
    "epochs": (2, 1, 3),
    "max_steps": (None, 3, 5, 8),
    "batches": (6, 1, 2, 3, 5, 7),
    "limit_train_batches": (None, 2, 0.5, 3),
    "limit_val_batches": (None, 0, 1, 0.5),
    "val_check_interval": (None, 2, 3, 0.5, 0.25, "across", "across odd"),
    "check_val_every_n_epoch": (1, 2),
    "sanity": (0, 1, 2, -1),
    "fast_dev_run": (False, True, 2),
    "overfit_batches": (0, 1, 2, 0.5),
    "accumulate": (1, 2, 3, 4),
    "accumulation_scheduler": (None, "{0: 1, 1: 2}", "{0: 2, 1: 1}"),
    "min_epochs": (None, 2),
    "reload_every": (0, 1, 2),
    "log_every": (1, 2, 50),
    "logger": ("watch", False, "csv"),
    "progress_bar": (False, "tqdm", "rich"),
    "inference_mode": (True, False),
    "barebones": (False, True),
    # numbers
    "precision": ("32-true", "bf16-mixed", "64-true", "bf16-true"),
    "clip": (None, ("norm", 0.1), ("value", 0.01)),
    "detect_anomaly": (False, True),
    "dropout": (True, False),
    "batch_norm": (False, True),
    "frozen": (False, True),
    "compiled": (False, "module", "net"),
    # data
    "data": (
        "map", "iterable", "iterable with length", "any iterable", "dict", "two", "max_size", "min_size", "workers",
    ),
    "shuffle": (False, True),
    "sampler": (None, "weighted", "own", "own batches"),
    "drop_last": (False, True),
    "short": (False, True),
    "val_loaders": (1, 0, 2),
    "val_data": ("map", "iterable", "empty", "short"),
    "by": ("arguments", "module", "datamodule"),
    "batch_type": ("tuple", "dict", "custom"),
    # the module
    "optimizer": ("sgd", "momentum", "adam", "adamw fused", "lbfgs", "none"),
    "groups": (1, 2),
    "configured": ("optimizer", "list", "dict", "lists"),
    "scheduler": (
        None, "step epoch", "step batch", "every 2 batches", "every 2 epochs", "plateau val", "plateau train",
        "one cycle", "lambda", "cosine", "two", "own step",
    ),
    "manual": (False, "plain", "closure", "gan", "accumulating", "two backwards", "with schedulers"),
    "returns": ("loss", "dict", "sometimes none"),
    "hooks": (True, False),
    "overrides": (
        None, "optimizer_step", "backward", "clipping", "zero_grad", "transfer", "configure_callbacks",
        "configure_model", "dataloader_iter", "optional batch_idx", "closure again",
    ),
    "keeps": (None, "state in checkpoint", "hyperparameters", "dataclass", "module in hyperparameters", "torchmetric"),
    "ema": (None, "in validation", "callback"),
    "stops": (None, "should_stop", "early", "early patient", "early at start", "max_time"),
    # log
    "log_train": ("step", "epoch", "both", "no"),
    "log_also": (
        None, "int", "large int", "float", "bool", "double", "half", "dict", "metric", "max", "min", "sum", "own name",
        "batch_size", "prog_bar", "without logger", "gradient", "nan", "int tensor", "rank zero",
    ),
    "log_in": (
        None, "on_train_epoch_end", "on_train_start", "on_train_batch_start", "on_before_optimizer_step",
        "on_validation_epoch_end", "on_train_batch_end", "on_validation_batch_end", "on_train_epoch_start",
        "callback on_train_epoch_end", "callback on_train_batch_end", "callback on_validation_end",
    ),
    "log_val": ("plain", "both", "without index", "sync", "metric", "max", "no"),
    # callbacks
    "callback": (None, "stateful", "lambda", "first", "stops validation", "learning rate", "timer", "summary"),
    "swa": (None, 0.5, 1),
    "finetuning": (None, 1),
    "lr_finder": (None, "tuner", "callback"),
    "batch_size_finder": (None, "tuner", "callback", "binary"),
    # checkpoints
    "checkpoint": (None, "default", "ModelCheckpoint", "two", "subclass", "off"),
    "every_n_train_steps": (None, 1, 2, 3, 4),
    "every_n_epochs": (None, 1, 2),
    "monitor": (None, "val_loss", "train_loss", "train_loss_epoch", "step"),
    "save_top_k": (1, -1, 2, 0),
    "save_last": (None, True, "link"),
    "save_weights_only": (False, True),
    "save_on_train_epoch_end": (None, True, False),
    "mode": ("min", "max"),
    "filename": (None, "{step}", "{epoch}-{val_loss:.2f}", "best", "a/{step}"),
    "subclass": ("on_train_batch_end", "on_validation_end", "on_train_epoch_end", "_save_checkpoint", "setup", "state"),
    "async_checkpoint": (False, True),
    "by_hand": (False, True),
    # faults
    "raises": (None, "RuntimeError", "KeyboardInterrupt", "SystemExit", "StopIteration"),
    "raises_in": (
        "training_step", "validation_step", "on_train_batch_end", "on_validation_end", "on_validation_start",
        "on_train_epoch_end", "on_before_optimizer_step", "callback on_train_batch_start", "setup",
        "callback on_train_batch_end", "callback on_validation_end", "callback on_train_epoch_end", "data",
        "configure_optimizers", "on_train_start", "on_save_checkpoint", "callback on_train_end",
    ),
    "raises_at": (3, 0, 1, 2, 4, 5, 6),
    # afterwards
    "then": (None, "validate", "test", "predict", "fit on", "validate best", "load", "fit again", "test a new trainer"),
    "resume": (None, "last", "each", "in a new process", "same directory", "same trainer"),
    "more_epochs": (1, 0, 2),
    # several processes
    "strategy": (None, "ddp", "ddp_fork", "ddp_spawn"),
    "unused": (False, "found", "not found"),
    "static_graph": (False, True),
    "own_sampler": (False, True),
    "bucket_view": (False, True),
    "rank_only": (None, "diagnostics", "logging", "backward"),
    # other ways to begin
    "made": (None, "init_module", "decorator", "twice"),
    "cli": (False, True),
}

FABRIC: Options = {
    "strategy": (None, "ddp", "ddp_fork", "ddp_spawn"),
    "model": ("plain", "parts", "dict", "list", "sequential", "compiled", "frozen", "batch_norm", "with method"),
    "setup": ("together", "apart", "module only", "parts", "no move"),
    "call": ("forward", "parts", "module", "before", "module parts", "method", "marked", "twice", "functional"),
    "optimizer": ("sgd", "adam", "two", "adamw fused", "lbfgs", "momentum"),
    "steps": (3, 1, 2, 4),
    "accumulate": (1, 2, 3),
    "no_sync": (False, True),
    "precision": ("32-true", "bf16-mixed", "64-true", "bf16-true"),
    "clip": (None, "norm", "value"),
    "data": (None, "loader", "shuffled", "own sampler", "two loaders", "iterable", "own batches", "workers"),
    "made": (None, "init_module", "decorator", "twice", "empty_init"),
    "save": (None, "plain", "filtered", "objects"),
    "load": (None, "plain", "not strict", "raw", "new model"),
    "collective": (None, "all_gather", "all_reduce", "broadcast", "gather dict", "first"),
    "rank_only": (None, "diagnostics", "evaluation", "own head", "uneven", "saliency", "backward of one"),
    "unused": (False, "found", "not found"),
    "static_graph": (False, True),
    "gan": (False, True),
    "looks": (None, "iterable", "attributes", "state", "copy", "pickle", "names", "hooks", "length", "set"),
    "retain": (False, True),
    "loss": ("backward", "plain backward", "autograd.grad"),
    "scheduler": (False, True),
    "callbacks": (False, True),
    "logger": (None, "csv", "watch"),
    "seed": (None, 7),
    "raises": (None, "RuntimeError", "KeyboardInterrupt"),
    "compiled_step": (False, True),
    "checkpointed": (False, True),
    "no_grad": (False, True),
    "lightning_module": (None, "logs", "optimizers", "backward"),
}
# fmt: on

ADDED = {"lightning_module": 1800}
"""Options that came later, and the seed from which on they are drawn: the programs of seeds before it stay the same."""

OPTIONS = {"trainer": TRAINER, "fabric": FABRIC}
COSTLY = {"ddp": 0.25, "ddp_fork": 0.3, "ddp_spawn": 0.03, "module": 0.3, "net": 0.3, "compiled": 0.3, "rich": 0.1}
"""How likely a value that takes long is kept, once drawn."""
LIKELY = {"checkpoint": 0.6, "monitor": 0.4, "resume": 0.35, "call": 0.6, "model": 0.6, "rank_only": 0.4}
SELDOM = {"cli": 0.08, "made": 0.4}


def spec(seed: int) -> Spec:
    """The program of a seed; the same on every machine and Python."""
    draw = random.Random(f"healthy {seed}")
    kind = "fabric" if draw.random() < 0.25 else "trainer"
    options = OPTIONS[kind]
    density = draw.choice((0.08, 0.15, 0.25, 0.35))
    found: Spec = {"kind": kind}
    ranks = draw.random() < (0.3 if kind == "fabric" else 0.08)
    for name, values in options.items():
        if name in ADDED:
            later = random.Random(f"healthy {seed} {name}")
            if seed % OF_OLDEST >= ADDED[name] and later.random() < 0.3:
                found[name] = later.choice(values[1:])
            continue
        if draw.random() < max(density, LIKELY.get(name, 0)) and draw.random() < SELDOM.get(name, 1):
            value = draw.choice(values[1:])
            if name == "strategy" or draw.random() < COSTLY.get(value if isinstance(value, str) else "", 1):
                found[name] = value
    if ranks:
        found["strategy"] = "ddp" if draw.random() < 0.8 else draw.choice(("ddp_fork", "ddp_fork", "ddp_spawn"))
    else:
        found.pop("strategy", None)
    return settle(found)


def release(seed: int) -> str:
    """The release on which the program of a seed is tried."""
    return OLDEST if seed >= OF_OLDEST else RELEASES[seed % len(RELEASES)]


def namespace(version: str) -> str:
    """``lightning`` below 2.1 imports the whole App with its dependencies; the other package has the same code."""
    return "pytorch_lightning" if version.startswith("2.0.") else "lightning"


def settle(found: Spec) -> Spec:
    """Drop the options that have no meaning beside the others, or that Lightning documents as a wrong use."""
    while True:
        settled = _settled(found)
        if settled == found:
            return found
        found = settled


def _settled(found: Spec) -> Spec:
    get = value_of(found)
    drop: set[str] = set()
    ddp = get("strategy") is not None
    if found["kind"] == "fabric":
        if get("gan"):
            drop |= {"optimizer", "model", "call", "setup", "retain", "checkpointed", "scheduler", "compiled_step"}
        if get("optimizer") == "lbfgs":
            drop |= {"accumulate", "no_sync", "clip", "retain", "loss"}
        if get("loss") == "autograd.grad":
            drop |= {"no_sync"}
        if get("model") in ("dict", "list", "sequential") or get("gan") or get("rank_only") == "own head":
            drop.add("lightning_module")
        if not ddp:
            drop |= {"unused", "static_graph", "no_sync"}
            if get("rank_only") in ("own head", "uneven"):
                drop.add("rank_only")
        if get("model") != "with method" and get("call") in ("method", "marked"):
            drop.add("call")
        if get("model") not in ("plain", "parts", "frozen", "compiled", "with method") and get("call") != "module":
            drop.add("checkpointed")
        if get("rank_only") in ("own head", "uneven"):
            drop |= {"gan", "unused", "static_graph", "data", "raises", "accumulate", "no_sync"}
        if get("load") is not None and get("save") is None:
            drop.add("load")
        if get("static_graph"):
            drop |= {"accumulate", "no_sync", "unused", "retain"}
        if get("unused") == "not found":
            drop |= {"static_graph", "retain"}
    else:
        if get("manual"):
            drop |= {"accumulate", "accumulation_scheduler", "clip", "swa", "lr_finder", "returns", "finetuning"}
            drop |= {"scheduler", "configured", "groups", "compiled"} | (
                {"optimizer"} if get("optimizer") == "lbfgs" else set()
            )
            if get("overrides") in ("optimizer_step", "backward", "clipping", "closure again"):
                drop.add("overrides")
        if get("optimizer") == "none":
            drop |= {"scheduler", "swa", "lr_finder", "clip", "configured", "groups", "manual", "finetuning"}
        if get("optimizer") == "lbfgs":
            drop |= {"clip", "accumulate", "accumulation_scheduler", "groups", "swa"}
        if get("accumulation_scheduler"):
            drop.add("accumulate")
        if get("configured") == "optimizer" and get("scheduler"):
            found = {**found, "configured": "dict"}
        if get("scheduler") == "plateau val" and get("val_loaders") == 0:
            drop.add("scheduler")
        if get("finetuning") or (get("swa") and get("scheduler") == "two"):
            drop.add("scheduler")
        if get("compiled") == "net":
            drop |= {"groups", "finetuning"}
        if get("returns") == "sometimes none":
            drop |= {"clip"}
        if get("barebones"):
            drop |= {"checkpoint", "logger", "progress_bar", "fast_dev_run", "detect_anomaly", "sanity", "log_every"}
            found = {k: v for k, v in found.items() if k not in drop} | {"checkpoint": "off", "logger": False}
        if get("checkpoint") is None:
            drop |= {"every_n_train_steps", "every_n_epochs", "monitor", "save_top_k", "save_last", "save_weights_only"}
            drop |= {"save_on_train_epoch_end", "mode", "filename"}
        if get("checkpoint") not in ("ModelCheckpoint", "two", "subclass"):
            drop |= {"every_n_train_steps", "every_n_epochs", "monitor", "save_top_k", "save_last", "save_weights_only"}
            drop |= {"save_on_train_epoch_end", "mode", "filename", "subclass"}
        if get("checkpoint") != "subclass":
            drop.add("subclass")
        if get("every_n_train_steps") and get("every_n_epochs"):
            drop.add("every_n_epochs")
        if get("monitor") is None or get("monitor") == "step":
            drop.add("mode")
            if get("save_top_k") == 2:
                found = {**found, "monitor": "step"}
        if get("monitor") == "val_loss" and (get("val_loaders") == 0 or get("limit_val_batches") == 0):
            found = {**found, "monitor": "train_loss"}
        if get("checkpoint") in (None, "off") or get("barebones"):
            drop |= {"resume", "async_checkpoint"}
        if get("save_weights_only"):
            drop.add("resume")
        if not get("raises"):
            drop |= {"raises_in", "raises_at"}
        if not ddp:
            drop |= {"unused", "static_graph", "own_sampler", "bucket_view", "rank_only"}
        else:
            drop |= {"raises", "raises_in", "raises_at", "stops", "batch_size_finder", "lr_finder"}
            if get("returns") == "sometimes none":
                drop.add("returns")
            if get("strategy") == "ddp_spawn":
                drop |= {"resume"}
        if get("unused") == "not found":
            drop.add("unused") if not get("manual") else None
        if not get("resume") and get("then") not in ("fit on",):
            drop.add("more_epochs")
        if get("ema") and get("compiled"):
            drop.add("compiled")
        if get("val_loaders") == 0:
            drop |= {"val_data", "log_val", "sanity", "val_check_interval", "check_val_every_n_epoch"}
            if get("then") in ("validate", "validate best"):
                drop.add("then")
        if get("overrides") == "dataloader_iter":
            drop |= {"data", "swa"}
        if get("cli"):
            found = {**found, "keeps": "module in hyperparameters", "then": "load", "by": "datamodule"}
            drop |= {"made", "resume", "compiled", "lr_finder", "batch_size_finder", "by_hand", "manual", "raises"}
            drop |= {"strategy", "checkpoint", "stops", "swa", "finetuning", "ema", "callback", "data", "then again"}
        if get("fast_dev_run"):
            drop |= {"resume", "lr_finder", "batch_size_finder"}
        if get("batch_size_finder") and (get("data") != "map" or get("by") == "arguments" or get("sampler")):
            drop.add("batch_size_finder")
        if get("data") not in ("map", "workers"):
            drop |= {"shuffle", "sampler", "drop_last", "short"}
        if get("sampler"):
            drop |= {"shuffle"} | ({"drop_last"} if get("sampler") == "own batches" else set())
        if isinstance(get("val_check_interval"), float) or get("val_check_interval") in (2, 3):
            size = get("batches") if get("limit_train_batches") is None else min(get("batches"), 2)
            if (
                get("data") == "iterable"
                and isinstance(get("val_check_interval"), float)
                or isinstance(get("val_check_interval"), int)
                and get("val_check_interval") > size
            ):
                drop.add("val_check_interval")
        if get("data") == "iterable":
            drop |= {"overfit_batches"} | ({"limit_train_batches"} if get("limit_train_batches") == 0.5 else set())
            if get("scheduler") == "one cycle":
                drop.add("scheduler")
            if get("swa"):
                drop.add("swa")
        if get("val_data") == "iterable" and get("limit_val_batches") == 0.5:
            drop.add("limit_val_batches")
        if get("overfit_batches"):
            drop |= {"limit_train_batches", "limit_val_batches", "val_check_interval"}
    return {name: value for name, value in found.items() if name == "kind" or name not in drop}


def value_of(found: Spec) -> Any:
    """Looks an option up, or its default."""
    options = OPTIONS[found["kind"]]
    return lambda name: found.get(name, options[name][0])


def scripts(found: Spec, namespace: str = "lightning") -> dict[str, str]:
    """The program's scripts by file name, in the order in which they run; those in ``parts/`` are only imported.

    Args:
        found: the spec.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
    """
    from tests.healthy import fabric_programs, trainer_programs

    write = trainer_programs.write if found["kind"] == "trainer" else fabric_programs.write
    names = {
        "lightning": ("lightning.pytorch", "lightning.fabric"),
        "pytorch_lightning": ("pytorch_lightning", "lightning_fabric"),
    }[namespace]
    return {name: text.replace("PL", names[0]).replace("LF", names[1]) for name, text in write(found).items()}
