"""A run can load the checkpoints that it has written, whatever they contain.

A process trusts a file if it has the digest of bytes that the process wrote. Other ranks read that digest from the
store of the process group. Everyone who can reach ``MASTER_PORT`` can write to the store, so a digest needs a proof
with a secret that is not in the store. The process that started the ranks shares the secret with them, or the user sets
it for all ranks.

The shared secret is in a file in memory. The environment, which programs print and log, contains only its path. To open
the path, a process must belong to the same user on the same machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import os
import pickle
import sys
import threading
from collections import OrderedDict
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from lightning_patches import notices
from lightning_patches.engine.functions import home_of, stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONTAINERS = (dict, OrderedDict, list, tuple, set)

_PLAIN = (int, float, complex, bool, str, bytes, type(None))

_LENT = "_LIGHTNING_PATCHES_RUN_SECRET"

_OF_USER = "LIGHTNING_PATCHES_HANG_SECRET"

_SHORTEST = 16

_secrets: list[bytes] = []
"""The secret that this process received or shares, set when Lightning is imported."""

_digests: dict[str, str] = {}
"""SHA-256 digests of the files that this process has written, by path."""

_WITH_STATE = " (with modules in lists, dicts or objects)"
"""Added to the path of such a file, which is loaded only to restore these modules in place."""

_find_inner: ContextVar[Callable[[], bool]] = ContextVar("_find_inner", default=bool)
"""Returns True if the modules can be restored in place. Set while Fabric loads a checkpoint."""


def _atomic_save(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    if not _secrets:  # before Lightning starts other ranks
        _secrets.append(_borrowed() or _lent())
    in_transaction = "transaction" in stock_of(original).__code__.co_names

    def _atomic_save(checkpoint: Any, filepath: Any) -> None:
        path = _local(filepath)
        _digests.pop(path, None)
        _digests.pop(path + _WITH_STATE, None)
        writable = path and os.access(os.path.dirname(path), os.W_OK)
        if not writable or not _refuses_objects() or not _holds_objects(checkpoint):
            original(checkpoint, filepath)
            return
        is_trainers = isinstance(checkpoint, dict) and "pytorch-lightning_version" in checkpoint
        if not is_trainers and _holds_state(checkpoint):
            path += _WITH_STATE
        # Do the original's work here: it does not expose the bytes, and reading the file later is not safe, because
        # other code may replace it at once.
        module: Any = sys.modules[original.__module__]
        buffer = io.BytesIO()
        if hasattr(module, "log"):  # since 2.1
            module.log.debug(f"Saving checkpoint: {filepath}")
        module.torch.save(checkpoint, buffer)
        content = buffer.getvalue()
        hashed = _hashed_meanwhile(content)
        if in_transaction:
            fs, place = module.fsspec.core.url_to_fs(str(filepath))
            with fs.transaction, fs.open(place, "wb") as file:
                file.write(content)
        else:
            with module.fsspec.open(filepath, "wb") as file:
                file.write(content)
        _digests[path] = digest = hashed()
        store = _store()
        if store is not None:
            with contextlib.suppress(RuntimeError):  # the store's host is gone: other ranks can't verify this file
                store.set(_key(path), digest + _proof(path, digest))

    return _atomic_save


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _load(path_or_url: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(path_or_url, map_location, *args, **kwargs)
        except pickle.UnpicklingError:
            asked = args[0] if args else kwargs.get("weights_only")
            path = _local(path_or_url)
            module: Any = sys.modules[original.__module__]
            # A wrapper of torch.load expects the arguments that Lightning passes.
            if not path or asked is not None or home_of(module.torch.load) != "torch.serialization":
                raise
            names = (path, path + _WITH_STATE) if _find_inner.get()() else (path,)
            digests = [_digests.get(name) or _digest_of_another_rank(name) for name in names]
            if not any(digests):
                raise
            with module.get_filesystem(path_or_url).open(path_or_url, "rb") as file:
                content = file.read()
            if not any(hmac.compare_digest(hashlib.sha256(content).hexdigest(), digest) for digest in digests):
                raise
        return module.torch.load(io.BytesIO(content), map_location=map_location, weights_only=False)

    return _load


def _fabric_load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    # Fabric saves the state of modules and optimizers of the top level, and loads it in place. It saves all others
    # whole, and loads copies, which the program does not use.
    def load(self: Any, path: Any, state: Any = None, *args: Any, **kwargs: Any) -> Any:
        inner: dict[Any, Any] = {}

        def find_inner() -> bool:
            if isinstance(state, dict) and type(self._strategy).load_checkpoint.__qualname__.startswith("Strategy."):
                values = [pair for pair in state.items() if not hasattr(type(pair[1]), "load_state_dict")]
                found = {name: value for name, value in values if _holds_state(value)}
                inner.update(found if all(map(_is_restorable, found.values())) else {})
            return bool(inner) or not state

        token = _find_inner.set(find_inner)
        try:
            rest = original(self, path, state, *args, **kwargs)
        finally:
            _find_inner.reset(token)
        for name, value in inner.items():
            saved, state[name] = state[name], value
            state[name] = _restored(value, saved, sys.modules[original.__module__]._unwrap_objects)
        return rest

    return load


def _is_restorable(value: Any) -> bool:
    """True if all modules in the value are in lists, tuples or dicts."""
    if type(value) in (dict, OrderedDict, list, tuple):
        return all(map(_is_restorable, value.values() if isinstance(value, dict) else value))
    return hasattr(type(value), "load_state_dict") or not _holds_state(value)


def _restored(given: Any, saved: Any, unwrap: Callable[[Any], Any]) -> Any:
    """Return a part of a state with the given modules, which get the state of the saved ones."""
    if hasattr(type(saved), "load_state_dict"):
        unwrap(given).load_state_dict(saved.state_dict())
        return given
    if not _holds_state(saved):
        return saved
    kind = type(saved)
    if kind is not type(given) or len(given) != len(saved):
        raise ValueError(
            f"Modules in the given {type(given).__name__} can't be restored from the saved {kind.__name__}."
        )
    if kind in (dict, OrderedDict):
        given.update((key, _restored(given[key], value, unwrap)) for key, value in saved.items())
        return given
    parts = [_restored(*pair, unwrap) for pair in zip(given, saved)]
    if kind is tuple:
        return tuple(parts)
    given[:] = parts
    return given


def _borrowed() -> bytes:
    """Return the secret that the parent process shares; empty if it shares none."""
    place = os.environ.get(_LENT, "")
    with contextlib.suppress(OSError):  # that process has ended
        if os.readlink(place).startswith(f"/memfd:{_LENT}"):
            with open(place, "rb") as file:
                return file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else b""
    return b""


def _lent() -> bytes:
    """Create a secret for this process and its children.

    If the system has no files in memory, the children don't get it.
    """
    secret = os.urandom(32)
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):  # not permitted
            file = os.memfd_create(_LENT)  # exists while this process lives
            os.write(file, secret)
            os.environ[_LENT] = f"/proc/{os.getpid()}/fd/{file}"
    return secret


def _hashed_meanwhile(content: bytes) -> Callable[[], str]:
    """Hash in a thread, in parallel to the write. Return a function that waits for the digest."""
    digest = hashlib.sha256()
    thread = threading.Thread(target=digest.update, args=(content,), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is exiting, or no thread can be started
        return lambda: hashlib.sha256(content).hexdigest()

    def wait() -> str:
        thread.join()
        return digest.hexdigest()

    return wait


def _digest_of_another_rank(path: str) -> str:
    """Return the digest that another rank published for the path; "" if there is none with a valid proof."""
    store = _store()
    if store is None:
        return ""
    try:
        entry = store.get(_key(path)).decode() if store.check([_key(path)]) else ""
    except (RuntimeError, UnicodeDecodeError):  # the store's host is gone, or the value is not ours
        return ""
    digest, proof = entry[:64], entry[64:]
    if hmac.compare_digest(proof.encode(), _proof(path, digest).encode()):
        return digest
    if entry:
        notices.notice(
            f"[rank {notices.rank()}] {path} is loaded without objects: the rank that claims to have written it has "
            "not proven to be one of this job. Give all ranks the same "
            f"{_OF_USER} ({_SHORTEST} characters or more), or call lightning_patches.trust_checkpoints(directory) "
            "if only you can write there.",
            urgent=True,
        )
    return ""


def _proof(path: str, digest: str) -> str:
    """Return the proof for a digest at a path, which needs the secret."""
    of_user = os.environ.get(_OF_USER, "").strip()
    secret = _as_bytes(of_user) if len(of_user) >= _SHORTEST else _secrets[0]
    return hmac.new(secret, _as_bytes(f"checkpoint {digest} {path}"), hashlib.sha256).hexdigest()


def _local(path: Any) -> str:
    """Return the real path of a local file, else "". Paths of other classes are not resolved."""
    if type(path) not in (str, type(Path())) or "://" in str(path) or "::" in str(path):
        return ""
    return str(os.path.realpath(path))


def _refuses_objects() -> bool:
    """True if torch loads only tensors and plain values by default, as it does since 2.6."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 6)


def _holds_objects(value: Any) -> bool:
    """True if the value contains anything but tensors and plain values. Unknown types count as objects."""
    return any(True for _ in _objects(value))


def _holds_state(value: Any) -> bool:
    """True if objects in the value have a ``load_state_dict``, such as modules."""
    return any(hasattr(type(one), "load_state_dict") for one in _objects(value))


def _objects(value: Any) -> Iterator[Any]:
    """Yield all objects but tensors and plain values, also those in attributes of others."""
    import torch

    tensors = (torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype, torch.device)
    plain, containers = {id(kind) for kind in (*_PLAIN, *tensors)}, {id(kind) for kind in _CONTAINERS}
    left, seen = [value], set()
    while left:
        one = left.pop()
        kind = id(type(one))  # by id, since a metaclass may override ==
        if kind in plain or id(one) in seen:
            continue
        seen.add(id(one))
        if kind in containers:
            left += one
            if isinstance(one, dict):
                left += one.values()
            continue
        yield one
        # without the object's own __getattribute__
        attributes = object.__getattribute__(one, "__dict__") if type(one).__dictoffset__ else None
        if isinstance(attributes, dict):  # not of a class
            left += attributes.values()


def _key(path: str) -> str:
    return f"lightning_patches/checkpoint/{hashlib.sha256(_as_bytes(path)).hexdigest()}"


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _store() -> Optional[Any]:
    """Return the store of the process group."""
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    from torch.distributed import distributed_c10d

    get = getattr(distributed_c10d, "_get_default_store", None)
    return get() if get is not None else None


PATCH = Patch(
    group="crash",
    affected=(">=1.5.0,<1.8.0", ">=1.8.0,<2.4.0", ">=2.6.0,<=2.6.6"),
    only_with=("torch>=2.6",),
    targets=(
        Target("fabric.utilities.cloud_io:_atomic_save", _atomic_save, since="1.9.0"),
        Target("fabric.utilities.cloud_io:_load", _load, since="1.9.0"),
        Target("fabric.fabric:Fabric.load", _fabric_load, since="2.0.0"),
        Target("lite.utilities.cloud_io:_atomic_save", _atomic_save, since="1.8.0", before="1.9.0"),
        Target("lite.utilities.cloud_io:_load", _load, since="1.8.0", before="1.9.0"),
        Target("pytorch.utilities.cloud_io:atomic_save", _atomic_save, before="1.8.0"),
        Target("pytorch.utilities.cloud_io:load", _load, before="1.8.0"),
    ),
    upstream=Upstream(issues=(21757,)),
    impact=Impact(
        "With PyTorch 2.6 and later, test(ckpt_path='best'), fit(ckpt_path='last') and load_from_checkpoint fail on a "
        "checkpoint that the same program has just written, if the model's saved hyperparameters contain objects "
        "other than plain values.",
        ("Weights only load failed", "WeightsUnpickler error: Unsupported global"),
        error="_pickle.UnpicklingError: Weights only load failed.",
    ),
    note="Only local files are trusted, and only if they are byte for byte what this process wrote, or what "
    "another rank wrote that has proven its identity. On Linux, ranks that Lightning starts can prove it: "
    "they get the location of the run's secret in the variable _LIGHTNING_PATCHES_RUN_SECRET. For ranks "
    "of torchrun or SLURM set LIGHTNING_PATCHES_HANG_SECRET. All other files, including replaced or "
    "changed ones, and checkpoints of plain values are loaded as without the patch. An explicit "
    "weights_only is respected, and a wrapped torch.load decides itself. If `fabric.load` gets a state with modules or "
    "optimizers in a list or dict, it restores these in place, and without a state, it returns all. Without the patch, "
    "pass weights_only=False or set TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1.",
    after=("checkpoint-written-once",),
    around=("trusted-checkpoint-load", "tuner-temporary-checkpoint"),
)
