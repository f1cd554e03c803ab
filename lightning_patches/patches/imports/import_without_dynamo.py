"""Importing Lightning, or predicting with it, does not import torch._dynamo.

Two modules import ``OptimizedModule`` from it: up to 2.2 when a Trainer gets a model, from 2.3 on when they are
imported. From 2.5 on, two methods are decorated with ``torch.compiler.disable``, which imports it, too.
"""

from __future__ import annotations

import builtins
import sys
from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Impact, Need, Patch, Target, Upstream
from lightning_patches.patches.imports import _optimized_module, _statements

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _without_dynamo(module: str, since: str = "") -> Target:
    """Return a target that makes the module import our ``OptimizedModule``, unless torch._dynamo has been imported."""

    def build(original: None, namespace: str) -> Callable[..., Any]:
        def import_module(name: str, *args: Any, **kwargs: Any) -> Any:
            if name == "torch._dynamo" and name not in sys.modules:
                return _optimized_module
            return builtins.__import__(name, *args, **kwargs)

        _statements.look_up_in_module("__import__", module, namespace)
        return import_module

    return Target(f"{module}:__import__", build, adds=True, early=True, since=since)


def _build_class(original: None, namespace: str) -> Callable[..., Any]:
    def build_class(body: Any, name: str, *bases: Any, **options: Any) -> Any:
        torch = body.__globals__.get("torch")
        if name != "_ResultCollection" or torch is None or "torch._dynamo" in sys.modules:
            return builtins.__build_class__(body, name, *bases, **options)
        from torch._compile import _disable_dynamo

        # While the class is created, torch.compiler.disable is torch's lazy decorator.
        compiler = SimpleNamespace(disable=_disable_dynamo)
        body.__globals__["torch"] = SimpleNamespace(**{**vars(torch), "compiler": compiler})
        try:
            return builtins.__build_class__(body, name, *bases, **options)
        finally:
            body.__globals__["torch"] = torch

    _statements.look_up_in_module("__build_class__", _RESULT, namespace)
    return build_class


PATCH = Patch(
    added="0.3.0",
    group="performance",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        _without_dynamo("fabric.wrappers", since="2.0.3"),
        _without_dynamo("pytorch.utilities.compile"),
        Target(f"{_RESULT}:__build_class__", _build_class, adds=True, early=True, since="2.5.0"),
    ),
    upstream=Upstream(issues=(19261, 12786)),
    impact=Impact(
        "From 2.3 on, 40 % of the time of `import lightning.pytorch` is the import of torch._dynamo, even in processes "
        "that neither train nor compile. Up to 2.2, the first fit, validate, test or predict imports it, for a second.",
        ("python -X importtime shows torch._dynamo below lightning.fabric.wrappers",),
    ),
    opt_in="users who start many processes that import Lightning, such as DataLoader workers on macOS, on "
    "Windows and from Python 3.14 on",
    signs=("multiprocessing_context num_workers",),
    witnesses=("fabric.wrappers:_unwrap_compiled", "pytorch.utilities.compile:to_uncompiled"),
    needs=(Need("torch:_lazy_modules"),),
    note="Import lightning_patches before Lightning. torch itself imports torch._dynamo at the first "
    "optimizer, and from 2.5 on at the first self.log. Opt-in because two kinds of programs rely on the "
    "early import. Some use a submodule of torch that only torch._dynamo imports, such as "
    "torch.distributed.fsdp or torch.distributed.tensor. Others set a variable that torch._dynamo reads, "
    "such as TORCHDYNAMO_DISABLE, after they import Lightning: with the patch it takes effect. Ranks that "
    "are forked before the first optimizer (ddp_fork, ddp_notebook) each import torch._dynamo themselves. "
    "lightning.fabric.wrappers.OptimizedModule becomes another class, whose instances and subclasses are "
    "those of torch's class.",
)
