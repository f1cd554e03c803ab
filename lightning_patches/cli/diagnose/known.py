"""The records that `diagnose` can recognize, with the texts and frames that show each of them.

The records are patches, bugs without a patch, features that no release has, frequent errors, and removed names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Union

from lightning_patches import patches as catalogue
from lightning_patches.known.frequent import frequent
from lightning_patches.known.unpatched import UNPATCHED, Unpatched
from lightning_patches.patch import Consequence, Patch
from lightning_patches.patches import removed
from lightning_patches.patches.removed import Removed

Record = Union[Patch, Unpatched, Removed]

MAX_GAP = 300
"""Most characters that ``...`` in a symptom matches."""
NAMESPACES = ("pytorch_lightning", "lightning.pytorch", "lightning")

_QUOTES = str.maketrans('‘’´`"“”', "'" * 7)
_BOX = re.compile(r"[─-╿❱]+")
_VARYING = (
    (re.compile(r"\b(cuda|xpu|mps|npu|hpu):\d+"), r"\1:n"),
    (re.compile(r"0x[0-9a-f]+"), "0xn"),
    (re.compile(r"\bline \d+\b"), "line n"),
)
ORDINARY = (
    "object has no attribute", "keyerror:", "indexerror: pop from empty list", "assertionerror", "stopiteration",
    "expected string or bytes-like object", "cannot pickle '_thread", "cannot be interpreted as an integer",
    "expected all tensors", "element 0 of tensors", "invalid load key", "no module named 'pkg_resources'",
    "contains fields not in fieldnames", "'module' object is not callable", "cannot schedule new futures",
    "out of memory", "invalid literal for int()", "dictionary update sequence element", "timed out waiting",
    "does not support len()", "weights only load failed", "unsupported global",
    "weights_only", "too many levels of symbolic links", "dataloader worker", "expected scalar type",
    "expected a 'cuda' device type", "libmpi.so", "error(s) in loading state_dict", "_orig_mod",
    "may follow ']' in format", "nvidia driver", "duplicate gpu",
    "load_state_dict is not called", "stack(): argument", "inconsistent compute device",
    "cannot import name '...' from", "no module named 'lightning_fabric.", "no module named 'lightning.fabric.",
    "no module named 'lightning_utilities.", "module 'lightning_fabric' has no", "internaltorchdynamoerror",
    "got multiple values for keyword", "weights are not", "no space left", "waiting for clients", "nccl timeout",
    "object is not subscriptable", "is a link to itself", "operation not permitted",
    "operation not supported", "function not implemented", "permission denied", "maximum recursion depth",
    "takes 2 positional arguments", "cannot convert a mps tensor", "local variable 'iterator'",
    "got an unexpected keyword argument 'batch_size'", "unsupported format string passed to",
)  # fmt: skip
"""Texts that other programs and mistakes also print. They count only with a frame of the code that has the bug."""
DISTINCT_WORDS = ("bad_bachtes", "_fabricmodule", "spikedetection", "mark_forward_method", "pytorch-lightning_version",
          "argparse_utils", "cve-")  # fmt: skip
"""Words that make an ordinary error distinct."""
WEAK = (
    "another profiling tool",
    "no backend type associated", "no module named 'pkg_resources'", "weights only load failed", "unsupported global",
    "watchdog caught", "learning rate set to", "barrier(): using", "currently unknown", "attempting graceful shutdown",
    "'srun' command is available", "killed by signal", "ambiguous collection", "parameters that were not used",
    "markuperror", "must return a tensor", "must either return a tensor", "'val_dataloader' must be implemented",
    "the number of the training batches", "not supported for manual optimization", "checkpoint contains only the model",
    "gpu accelerator is not used", "reference any fsdp parameters", "different devices in metric calculation",
    "already configured with a", "conditioned on metric", "cannot be called on an instance", "lrscheduler api",
    "attempting to deserialize object on a cuda device", "invalid artifact path", "parser key 'lr_scheduler'",
    "could not generate a config", "does not accept nested key", "try installing [", "unscale_", "from 'mpi4py'",
    "this variable is not supported", "no last checkpoint available", "not enough points", "inject custom 'sampler'",
    "inject a (distributed) sampler", "inject a modified sampler", "cannot convert float infinity",
    "'mpsaccelerator' can not run",
)  # fmt: skip
"""Texts that make a bug possible, but not certain, without a frame of the code that has the bug."""

BY_FRAME = ("got an unexpected keyword argument 'batch_size'", "unsupported format string passed to")
"""Ordinary texts that are no sign of a bug without a frame of its code, even if they have no other words."""
AMBIGUOUS = (
    "must return a tensor", "lrscheduler api", "already configured with a", "gpu accelerator is not used",
    "reference any fsdp parameters",
)  # fmt: skip
"""Errors that the same code also raises for mistakes of a program. A frame of that code does not prove the bug."""
USUAL = ("try installing [",)
"""Texts of runs without the bug, too. They count only in a user's description."""


@dataclass(frozen=True)
class Known:
    """A text in a log that is a sign of a record.

    Args:
        record: the record.
        symptom: the text in the record.
        pieces: the normalised text, split at its gaps.
        places: parts of frames (path and function). A traceback of the bug has one of them.
        is_distinct: True if only this record has the text.
        owner: class or function of a removed name. If the text names an owner, it must be this one.
        is_shared: True if the bug of another patch also has the text.
    """

    record: Record
    symptom: str
    pieces: tuple[str, ...]
    places: tuple[str, ...]
    is_distinct: bool
    owner: str = ""
    is_shared: bool = False


def normalised(text: str) -> str:
    """Remove boxes, extra white space, and differences in case, quotes, device numbers and line numbers."""
    text = _BOX.sub(" ", text).translate(_QUOTES).lower()
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def pieces(symptom: str) -> tuple[str, ...]:
    """Split a symptom at its gaps and normalise it. The last piece is empty if the symptom ends with a gap."""
    found = [piece.strip() for piece in re.split(r"\.\.\.|…", normalised(symptom))]
    return tuple(piece for index, piece in enumerate(found) if piece or 0 < index == len(found) - 1)


def place(wanted: tuple[str, ...], text: str) -> int:
    """Return the index in a normalised text at which the pieces of a symptom begin; -1 if they do not occur in
    order."""
    begin = text.find(wanted[0]) if wanted else -1
    for _ in range(50):
        if begin < 0:
            return -1
        end = begin + len(wanted[0])
        for piece in wanted[1:]:
            at = text.find(piece, end, end + MAX_GAP + len(piece))
            end = at + len(piece) if at >= 0 else -1
            if end < 0:
                break
        if end >= 0 and _is_whole(text, begin, end, not wanted[-1]):
            return begin
        begin = text.find(wanted[0], begin + 1)
    return -1


def _is_whole(text: str, begin: int, end: int, is_open: bool) -> bool:
    """True if a match does not begin or end within a word: ``KeyError: 0`` does not match ``KeyError: 01``."""
    before, first, last, after = text[begin - 1 : begin], text[begin], text[end - 1], text[end : end + 2]
    if first.isalnum() and (before.isalnum() or before == "_"):
        return False
    if not last.isalnum() or is_open:
        return True
    return not (after[:1].isalnum() or after[:1] == "_" or (after[:1] == "." and after[1:].isalnum()))


@lru_cache(maxsize=None)
def records() -> tuple[Record, ...]:
    """Return all records, but no warning about a bug that another patch fixes."""
    patches = [one for one in catalogue.all_patches() if not (one.warns and one.fixed_by)]
    return (*patches, *UNPATCHED, *frequent())


@lru_cache(maxsize=None)
def consequences() -> tuple[tuple[Patch, Consequence], ...]:
    return tuple((one, later) for one in records() if isinstance(one, Patch) for later in one.impact.consequences)


@lru_cache(maxsize=None)
def all_known() -> tuple[Known, ...]:
    """Return all texts that are a sign of a record."""
    found = []
    for record in records():
        found += [Known(record, symptom, pieces(symptom), places(record), True) for symptom in symptoms(record)]
    plain = []
    texts = [(one, " ... ".join(one.pieces)) for one in found]
    for one, text in texts:
        others = [other.record for other, longer in texts if other.record is not one.record and text in longer]
        distinct = _is_distinct(one.record, text, bool(others))
        shared = isinstance(one.record, Patch) and any(isinstance(other, Patch) for other in others)
        plain.append(replace(one, is_distinct=distinct, is_shared=shared))
    for row in removed.rows():
        plain += [Known(row, text, pieces(text), (), True, owner) for text, owner in _errors_of(row)]
    return tuple(plain)


def is_no_bug(record: Record) -> bool:
    """True for a removed name, a feature that no release has, and an error with a cause outside of Lightning."""
    return isinstance(record, Removed) or (isinstance(record, Unpatched) and not record.is_bug)


def is_outside(record: Record) -> bool:
    """True for an event, and for an error with a cause outside of Lightning."""
    return record.group in ("environment", "event")


def _is_distinct(record: Record, text: str, is_of_others: bool) -> bool:
    """True if only this record has a text."""
    if is_outside(record):
        return not getattr(record, "is_shared", False)
    return not is_of_others and not is_ordinary(text)


def is_weak(symptom: str) -> bool:
    """True if a symptom has other causes than the bug, too."""
    return any(words in " ".join(pieces(symptom)) for words in WEAK)


def is_ordinary(text: str) -> bool:
    """True if other programs also print this normalised text."""
    common = len(text) < 14 or any(words in text or text in words for words in ORDINARY)
    return common and not any(word in text for word in DISTINCT_WORDS)


def texts(record: Record) -> list[str]:
    """Return the symptoms, the title and the summary of a record."""
    return [*record.impact.symptoms, record.title, record.impact.summary]


def symptoms(record: Record) -> tuple[str, ...]:
    """Return the symptoms and advisories of a record."""
    return tuple(dict.fromkeys((*record.impact.symptoms, *getattr(record, "advisories", ()))))


@lru_cache(maxsize=None)
def places(record: Record) -> tuple[str, ...]:
    if record.impact.frames:
        return record.impact.frames
    modules = {location.partition(":")[0].replace(".", "/") for location in getattr(record, "locations", ())}
    return tuple(f"{module}{end}" for module in sorted(modules) for end in (".py", "/__init__.py"))


_NEXT_ARGUMENT = {"optimizer_step": "optimizer_closure", "lr_scheduler_step": "metric"}
"""Hook -> the argument that Python reports as missing if the program's hook still has the parameter ``optimizer_idx``.
That parameter then receives the argument before it."""
_SUBCLASSED = ("LightningModule", "LightningDataModule")
"""Classes that programs subclass. Errors name the subclass."""


_ERRORS: dict[str, tuple[tuple[str, str], ...]] = {
    "module": (
        ("No module named '{root}.{name}'", ""),
        ("No module named '{root}.{name}.", ""),
        ("from '{root}.{name}'", ""),
        ("cannot import name '{last}' from '{root}{parent}'", ""),
        ("module '{root}{parent}' has no attribute '{last}'", ""),
    ),
    "name": (
        ("cannot import name '{name}' from '{root}{within}'", ""),
        ("cannot import name '{name}' from partially initialized module '{root}{within}'", ""),
        ("module '{root}{within}' has no attribute '{name}'", ""),
        ("cannot import name '{name}'", "from"),
    ),
    "hook": (
        ("Support for '{name}' has been removed in v2", ""),
        ("{name}' has been removed", ""),
        ("{name} has been removed", ""),
    ),
    "hook argument": (("{owner}() missing ... required positional argument... '{missing}'", ""),),
    "argument": (
        ("got an unexpected keyword argument '{name}'", "{owner}"),
        ("unexpected keyword argument '{name}'", "{owner}"),
    ),
    "value": (
        ("You selected an invalid {owner} name: '{owner}='{name}'", ""),
        ("invalid {owner} name: '{owner}='{name}'", ""),
    ),
    "attribute": (
        ("type object '{owner}' has no attribute '{name}'", ""),
        ("'{owner}' object has no attribute '{name}'", ""),
    ),
    "attribute of a subclass": (
        ("type object '{owner}' has no attribute '{name}'", ""),
        ("' object has no attribute '{name}'", "{owner}"),
        ("' has no attribute '{name}'", "{owner}"),
    ),
    "training_step(optimizer_idx)": (
        ("Training with multiple optimizers is only supported with manual optimization", ""),
    ),
}
"""Kind or name of a row -> the errors of Python and Lightning for a removed name, each with the owner that the error
must name, or ""."""


def _errors_of(row: Removed) -> Iterator[tuple[str, str]]:
    """Yield the errors for a removed name, each with the owner that the error must name, or ""."""
    owner, name = row.owner, row.member
    kind = "attribute of a subclass" if row.kind == "attribute" and owner in _SUBCLASSED else row.kind
    parent, _, last = name.rpartition(".")
    fields = {"owner": owner, "name": name, "last": last, "parent": f".{parent}".rstrip(".")}
    also = _NEXT_ARGUMENT.get(owner, name) if name == "optimizer_idx" else name
    for text, owner_text in (*_ERRORS[kind], *_ERRORS.get(f"{owner}({name})", ())):
        for root in NAMESPACES if "{root}" in text else ("",):
            for missing in dict.fromkeys((name, also)) if "{missing}" in text else ("",):
                found = text.format(root=root, missing=missing, within=f".{owner}".rstrip("."), **fields)
                yield found, owner_text.format(owner=owner)


@lru_cache(maxsize=None)
def by_word() -> dict[str, list[Known]]:
    """Map the rarest word of each text to the texts. A log is compared only with texts whose rarest word it has."""
    known = all_known()
    frequency = Counter(word for one in known for word in set(_words(one)))
    found: dict[str, list[Known]] = {}
    for one in known:
        words = _words(one)
        if words:
            found.setdefault(min(words, key=lambda word: (frequency[word], -len(word))), []).append(one)
    return found


def _words(one: Known) -> list[str]:
    """Return the words of a text. Words beside a gap may be parts of words, and count only if there are no others."""
    last = len(one.pieces) - 1
    found = [
        word.group()
        for index, piece in enumerate(one.pieces)
        for word in re.finditer(r"\w+", piece)
        if (word.start() or not index) and (word.end() < len(piece) or index == last)
    ]
    return found or re.findall(r"\w+", " ".join(one.pieces))


def contained_in(text: str) -> Iterator[tuple[Known, int]]:
    """Yield the known texts that a normalised text contains, each with its index."""
    index = by_word()
    for word in sorted(set(re.findall(r"\w+", text)) & index.keys()):
        for one in index[word]:
            at = place(one.pieces, text)
            if at >= 0:
                yield one, at
