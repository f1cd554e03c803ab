"""A compiled and an uncompiled model can load each other's checkpoints."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Iterator

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load_state_dict(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, state_dict, *args, **kwargs)
        except RuntimeError:
            renamed = _renamed(self, state_dict)
            if renamed is None or not _fits(self, renamed):
                raise
        return original(self, renamed, *args, **kwargs)

    return load_state_dict


def _renamed(model: Any, state_dict: Any) -> Any:
    """Return the entries under the model's names if the names differ by ``_orig_mod``; else ``None``."""
    paths = {uncompiled(path): path for path, _ in parts(model)}
    renamed: Any = OrderedDict()
    for name, value in state_dict.items():
        path, _, last = name.rpartition(".")
        path = paths.get(uncompiled(path), path)
        renamed[f"{path}.{last}" if path else last] = value
    if len(renamed) < len(state_dict) or set(renamed) == set(state_dict):
        return None
    versions = {uncompiled(path): about for path, about in (getattr(state_dict, "_metadata", None) or {}).items()}
    renamed._metadata = OrderedDict((path, versions[name]) for name, path in paths.items() if name in versions)
    return renamed


def _fits(model: Any, state_dict: Any) -> bool:
    """True if all entries match the model. A partial match would load wrong weights."""
    import torch

    own: dict[str, Any] = {}
    others: tuple[str, ...] = ()
    for path, part in parts(model):
        prefix, names = f"{path}." if path else "", vars(part)
        if not type(part)._load_from_state_dict.__module__.startswith("torch.nn."):
            others += (prefix,)  # the module's own loading code may use other names
        passing = names.get("_non_persistent_buffers_set", ())
        for name, tensor in {**names.get("_parameters", {}), **names.get("_buffers", {})}.items():
            if tensor is not None and name not in passing:
                own[prefix + name] = tensor
    known = {name for name in state_dict if name.rpartition(".")[2] != "_extra_state" and not name.startswith(others)}
    return known == {name for name in own if not name.startswith(others)} and all(
        torch.nn.parameter.is_lazy(own[name]) or own[name].shape == getattr(state_dict[name], "shape", None)
        for name in known
    )


def parts(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the submodules as torch's loading does, without ``named_modules``, which the program may override."""
    yield path, module
    for name, part in object.__getattribute__(module, "__dict__").get("_modules", {}).items():
        if part is not None:
            yield from parts(part, f"{path}.{name}" if path else name)


def named_tensors(module: Any, kinds: tuple[str, ...] = ("parameters", "buffers")) -> Iterator[tuple[str, Any]]:
    """Yield parameters and buffers with their names, without ``named_parameters``, which the program may override."""
    import torch

    for path, part in parts(module):
        for kind in kinds:
            is_traced = isinstance(part, torch.jit.ScriptModule)
            found = getattr(part, f"named_{kind}")() if is_traced else vars(part).get(f"_{kind}", {}).items()
            yield from ((f"{path}.{name}" if path else name, tensor) for name, tensor in found if tensor is not None)


def uncompiled(path: str) -> str:
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(Target("pytorch.core.module:LightningModule.load_state_dict", _load_state_dict, adds=True),),
    upstream=Upstream(issues=(17415, 20233)),
    impact=Impact(
        "A checkpoint of a model with parts compiled by torch.compile cannot be loaded into the same model "
        "without torch.compile, or the other way round, neither by load_from_checkpoint nor with ckpt_path.",
        (
            "_orig_mod.",
            "Unexpected key(s) in state_dict: with _orig_mod",
            "Missing key(s) in state_dict: with _orig_mod",
        ),
        error="RuntimeError: Error(s) in loading state_dict for ...:",
    ),
    note="The patch acts only after loading has failed, and only if all names match once _orig_mod is ignored. "
    "Otherwise the first error is raised, and nothing more is loaded. With strict=False torch raises no "
    "error, and the patch does nothing, because a working program would get other weights. The patch adds "
    "a load_state_dict method to LightningModule: a tool that checks if a model overrides "
    "torch.nn.Module's method finds it. If a program catches the error and renames the entries itself, "
    "they are already loaded. Without the patch, load the checkpoint into a model that is compiled like "
    "the saved one.",
)
