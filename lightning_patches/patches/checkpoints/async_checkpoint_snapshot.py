"""AsyncCheckpointIO saves the state at the time when the save was requested."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _save_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_checkpoint(self: Any, *args: Any, **kwargs: Any) -> None:
        if "checkpoint" in kwargs:
            kwargs["checkpoint"] = _snapshot(kwargs["checkpoint"], {})
        elif args:
            args = (_snapshot(args[0], {}), *args[1:])
        original(self, *args, **kwargs)

    return save_checkpoint


def _snapshot(value: Any, copies: dict[Any, Any]) -> Any:
    """Copy the tensors and plain containers of a checkpoint, so that they can't change while they are written.

    The pickled copy has the same content: it keeps parameters, attributes of tensors, shared memory and recursive
    containers. Other objects, including tensor subclasses, are not copied.

    Args:
        value: a checkpoint or a part of one.
        copies: the copies made so far, by original.
    """
    import torch

    kind = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        return _copied_tensor(value, copies)
    if id(value) in copies:
        return copies[id(value)][0]
    copied: Any = value
    if kind in (dict, OrderedDict, defaultdict):
        copied = copy.copy(value)  # also copies attributes, such as a state dict's _metadata
        copies[id(value)] = copied, value
        for key, item in value.items():
            copied[key] = _snapshot(item, copies)
    elif kind is list:
        copied = []
        copies[id(value)] = copied, value
        copied += [_snapshot(item, copies) for item in value]
    elif kind is tuple or isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [_snapshot(item, copies) for item in value]
        if any(new is not old for new, old in zip(items, value)):
            copied = tuple.__new__(kind, items)  # the class's own __new__ may need other arguments
            vars(copied).update(vars(value)) if hasattr(value, "__dict__") else None
        copies[id(value)] = copied, value
    return copied


def _copied_tensor(tensor: Any, copies: dict[Any, Any]) -> Any:
    """Return the same view of a copy of the tensor's memory. Shared memory is copied once."""
    import torch

    if id(tensor) in copies:
        return copies[id(tensor)][0]
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
        copied = tensor.detach().clone()
    else:
        # torch 1.13 has no untyped_storage()
        memory = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        key = memory.device, memory.data_ptr(), memory.nbytes()
        if key not in copies:
            copies[key] = memory.clone()
        copied = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copied.set_(copies[key], tensor.storage_offset(), tensor.size(), tensor.stride())
        if tensor.is_conj():
            copied = copied.conj()
        if tensor.is_neg():
            copied = torch._neg_view(copied)
    if isinstance(tensor, torch.nn.Parameter):
        copied = torch.nn.Parameter(copied, requires_grad=tensor.requires_grad)
    else:
        copied.requires_grad_(tensor.requires_grad)
    vars(copied).update(vars(tensor))
    copies[id(tensor)] = copied, tensor
    return copied


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "a checkpoint holds the state at the time when the save was requested"),
    affected=(">=1.8.0,<2.5.4",),
    targets=(Target("pytorch.plugins.io.async_plugin:AsyncCheckpointIO.save_checkpoint", _save_checkpoint),),
    upstream=Upstream(
        pull_requests=(21079,),
        commit="2c74bee068",
        fixed_in="2.5.4",
        tests=(
            "tests/tests_pytorch/plugins/test_async_checkpoint.py"
            "::test_async_checkpoint_should_snapshot_values_before_mutation",
        ),
    ),
    impact=Impact(
        "A checkpoint written by AsyncCheckpointIO can mix weights and optimizer state of several training steps, "
        "because training continues while a thread writes the file.",
        ("checkpoint differs from the weights at the time of saving", "torn checkpoint"),
    ),
    note="The patch copies tensors on their device, as the official fix does: saving needs free device memory "
    "for one more checkpoint, which a run that fills its device may not have. Unlike the official fix, "
    "the copy keeps the module versions of a state dict (its _metadata), tied weights as one tensor, "
    "parameters as parameters, and containers of other libraries such as OmegaConf.",
)
