"""``fabric/utilities/cloud_io.py``: checkpoints that this run has written itself, read back whatever they hold.

What is about to be written is noted: where, and a digest of each block. A file is trusted if every block that is read
has its digest, and the note never leaves the run: it is in this process's memory and, for the other ranks, in the
store of the process group.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections import OrderedDict
from typing import Any, BinaryIO, Callable, NamedTuple, Optional

from lightning_patches import _runtime
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches import _beside

_BLOCK = 2**20
_CONTAINERS = (dict, OrderedDict, list, tuple, set)
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


class _Note(NamedTuple):
    """What a file held when it was written: its size in bytes, and the SHA-256 of each block."""

    size: int
    digests: list[str]


_notes: dict[str, _Note] = {}


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        path = _local(filepath)
        _notes.pop(path, None)
        if not _beside.is_possible(filepath) or not _refuses_objects() or not _holds_objects(checkpoint):
            original(checkpoint, filepath)
            return
        import torch

        with _beside.written(filepath) as file:
            noting = _Noting(file)
            torch.save(checkpoint, noting)
        _notes[path] = note = noting.note()
        store = _store()
        if store is not None:
            with contextlib.suppress(RuntimeError):  # the store's host has left: the other ranks will not know
                store.set(_key(path), json.dumps(note))

    return _atomic_save


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _load(path_or_url: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        asked = args[0] if args else kwargs.get("weights_only")
        path = _local(path_or_url)
        note = _find_note(path) if path and asked is None and _refuses_objects() else None
        if note is not None:
            import torch

            with open(path, "rb", buffering=0) as file:
                blocks = _Verified(file, note)
                try:
                    return torch.load(io.BufferedReader(blocks), map_location=map_location, weights_only=False)
                except Exception:
                    if not blocks.changed:
                        raise
            _runtime.warn_once(
                f"own-checkpoint-load {path}",
                f"{path} is not what this run wrote there. It is loaded as any other file, without objects.",
            )
        return original(path_or_url, map_location, *args, **kwargs)

    return _load


class _Noting:
    """What torch.save writes into: the file gets it, and the note."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size, self._digests = 0, [hashlib.sha256()]

    def write(self, data: Any) -> int:
        self._file.write(data)
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            part = view[at : at + _BLOCK - self._size % _BLOCK]
            self._digests[-1].update(part)
            self._size += len(part)
            at += len(part)
            if self._size % _BLOCK == 0:
                self._digests.append(hashlib.sha256())
        return len(view)

    def flush(self) -> None:
        self._file.flush()

    def note(self) -> _Note:
        blocks = -(-self._size // _BLOCK)
        return _Note(self._size, [digest.hexdigest() for digest in self._digests[:blocks]])


class _Verified(io.RawIOBase):
    """A file whose blocks are checked as they are read: what is returned is what was checked.

    Attributes:
        changed: a block was not what the note says; reading it raised OSError.
    """

    def __init__(self, file: io.RawIOBase, note: _Note) -> None:
        self._file, self._note = file, note
        self._at = 0
        self._index, self._block = -1, b""
        self.changed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._note.size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        index, start = divmod(self._at, _BLOCK)
        if index >= len(self._note.digests):
            return 0
        if index != self._index:
            self._block, self._index = self._checked(index), index
        part = self._block[start : start + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _checked(self, index: int) -> bytes:
        self._file.seek(index * _BLOCK)
        wanted = min(_BLOCK, self._note.size - index * _BLOCK)
        block = bytearray()
        while len(block) < wanted:
            piece = self._file.read(wanted - len(block))
            if not piece:
                break
            block += piece
        if _digest(block) != self._note.digests[index]:
            self.changed = True
            raise OSError("the file has changed since it was written")
        return bytes(block)


def _digest(block: Any) -> str:
    return hashlib.sha256(block).hexdigest()


def _local(path: Any) -> str:
    """The file itself, links followed, if it is on this machine's disk; "" if not."""
    if not isinstance(path, (str, os.PathLike)) or "://" in os.fspath(path) or "::" in os.fspath(path):
        return ""
    return os.path.realpath(path)


def _refuses_objects() -> bool:
    """Whether torch loads nothing but tensors and plain values unless told otherwise, which it does since 2.6."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 6)


def _holds_objects(value: Any) -> bool:
    """Whether anything in there is neither a tensor nor a plain value. What is not known counts as an object."""
    import torch

    plain = (*_PLAIN, torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype, torch.device)
    left, seen = [value], set()
    while left:
        one = left.pop()
        if type(one) in plain:
            continue
        if type(one) not in _CONTAINERS:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            left += one
            if isinstance(one, dict):
                left += one.values()
    return False


def _key(path: str) -> str:
    return f"lightning_patches/checkpoint/{hashlib.sha256(path.encode()).hexdigest()}"


def _store() -> Optional[Any]:
    """The store of the process group, which all ranks of the run share."""
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    from torch.distributed import distributed_c10d

    get = getattr(distributed_c10d, "_get_default_store", None)
    return get() if get is not None else None


def _find_note(path: str) -> Optional[_Note]:
    if path in _notes:
        return _notes[path]
    store = _store()
    if store is None:
        return None
    with contextlib.suppress(RuntimeError):  # the store's host has left
        if store.check([_key(path)]):
            size, digests = json.loads(store.get(_key(path)))
            return _Note(size, digests)
    return None


PATCHES = (
    Patch(
        name="own-checkpoint-load",
        title="A run can load the checkpoints that it has written itself, whatever they hold",
        group="crash",
        affected=(">=2.0.0,<2.4.0", ">=2.6.0,<=2.6.6"),
        targets=(
            Target("fabric.utilities.cloud_io:_atomic_save", _atomic_save),
            Target("fabric.utilities.cloud_io:_load", _load),
        ),
        upstream=Upstream(issues=(21757,)),
        impact=Impact(
            "Under PyTorch 2.6 and later, test(ckpt_path='best'), fit(ckpt_path='last') and load_from_checkpoint fail "
            "on the checkpoint that the same program has just written, when the model's saved hyperparameters hold "
            "anything but plain values.",
            ("Weights only load failed", "WeightsUnpickler error: Unsupported global"),
        ),
        equivalent_to="the same program with weights_only=False, or with TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1",
        note="Only a local file is read this way, only in the run that wrote it (this process, or another rank of its "
        "process group), and only as long as each block is still what was written. Any other file, and one that was "
        "replaced or changed, is loaded as before. weights_only, where it is passed, is obeyed.",
        relied_on="Programs that count on torch to refuse what others wrote or changed still can, and "
        "weights_only=True is obeyed. A checkpoint of plain values is loaded as before.",
        relied_on_tests=(
            "tests/patches/test_own_checkpoint_load.py::test_what_the_run_did_not_write_is_refused",
            "tests/patches/test_own_checkpoint_load.py::test_weights_only_is_obeyed",
            "tests/patches/test_own_checkpoint_load.py::test_a_checkpoint_without_objects_is_left_alone",
        ),
    ),
)
