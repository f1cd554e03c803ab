"""Find the releases of Lightning that fit the frames of a traceback.

``frames.json`` lists the functions that occur in tracebacks: the first line of each in each release, and the lines that
a frame can name. ``scripts/_frames.py`` writes the file.
"""

from __future__ import annotations

import json
import pkgutil
import re
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"


class Frame(NamedTuple):
    """A frame of a traceback.

    Args:
        path: path of the file, as in the log.
        function: name of the function; "" if the log does not show it.
        number: number of the line; 0 if the log does not show it.
        source: the source line; "" if the log does not show it.
    """

    path: str
    function: str
    number: int = 0
    source: str = ""


def mark(line: str) -> str:
    """Return a hash of six bits of a line's text. It is the same in both namespaces."""
    text = (
        line.strip().replace("pytorch_lightning", "lightning.pytorch").replace("lightning_fabric", "lightning.fabric")
    )
    return ALPHABET[zlib.crc32(text.encode()) % 64]


def upstream_path(path: str) -> str:
    """Return a path of Lightning without the namespace, such as ``"pytorch/trainer/trainer.py"``; "" for other
    files."""
    path = path.replace("\\", "/")
    found = re.search(
        r"(?:^|/)(?:lightning/(pytorch|fabric)|(pytorch)_lightning|lightning_(fabric))/(?!.*site-packages)", path
    )
    if found is None and path.startswith(("...", "…")):
        return _whole_path(path.partition("/")[2])
    if found is None or "/lightning_patches/" in path:
        return ""
    return f"{found[1] or found[2] or found[3]}/{path[found.end() :]}"


@lru_cache(maxsize=1000)
def _whole_path(end: str) -> str:
    """Return the path in Lightning that ends with a file and its directory, such as ``"trainer/call.py"``, or ""."""
    return next((path for path in _data()["files"] if "/" in end and f"/{path}".endswith(f"/{end}")), "")


_APP = re.compile(r"[/\\]lightning[/\\]app[/\\]")
"""The App framework of Lightning below 2.3, which has no patches."""


def is_patched(frame: Frame) -> bool:
    """True if a frame is in the code of a patch."""
    return re.search(r"[/\\]lightning_patches[/\\]patches[/\\]", frame.path) is not None


def is_lightning(frame: Frame) -> bool:
    """True if a frame is in Lightning's code or in a patch."""
    return bool(upstream_path(frame.path)) or is_patched(frame) or _APP.search(frame.path) is not None


def passing(places: Iterable[str], frames: Iterable[Frame]) -> list[int]:
    """Return the indices of the frames whose ``PATH in FUNCTION`` contains one of the places."""
    found = []
    for index, frame in enumerate(frames):
        inside = upstream_path(frame.path)
        path = f"/lightning/{inside}" if inside else frame.path.replace("\\", "/")
        if any(place in f"{path} in {frame.function}" for place in places):
            found.append(index)
    return found


def releases(frames: Iterable[Frame]) -> frozenset[str]:
    """Return the releases that fit all frames. Frames that fit no release are ignored."""
    found: frozenset[str] = frozenset()
    for frame in frames:
        fitting = _fitting(frame) or _fitting(frame._replace(source=""))
        if fitting:
            found = (found & fitting) or (found if found else fitting)
    return found


def _fitting(frame: Frame) -> frozenset[str]:
    """Return the releases with this line in this function of this file."""
    *bodies, rows = _data()["files"].get(upstream_path(frame.path), {}).get(frame.function, [""])
    found: set[str] = set()
    for at in range(0, len(rows), 6):
        high, low, body, begin_high, begin_low, more = map(ALPHABET.index, rows[at : at + 6])
        offset, begin = frame.number - 64 * high - low, 64 * begin_high + begin_low
        text = _lines(bodies[body]).get(offset)
        if text is not None and (not frame.source or text == mark(frame.source)):
            found.update(_data()["releases"][begin : begin + more + 1])
    return frozenset(found)


@lru_cache(maxsize=None)
def _lines(body: str) -> dict[int, str]:
    """Return the lines that a frame can name, as offsets from the function's first line, each with its :func:`mark`."""
    found, offset, at = {}, 0, 0
    while at < len(body):
        distance = ALPHABET.index(body[at])
        if distance == len(ALPHABET) - 1:
            offset += distance - 1
            at += 1
        else:
            offset += distance
            found[offset] = body[at + 1]
            at += 2
    return found


@lru_cache(maxsize=None)
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(pkgutil.get_data(__package__, "frames.json") or b"{}")
    return data
