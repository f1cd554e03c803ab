"""Frequent errors and questions that are no bug of Lightning: the records of ``frequent.txt``."""

from __future__ import annotations

import pkgutil
import re
from collections import defaultdict
from functools import lru_cache
from typing import Any, cast

from lightning_patches.known.unpatched import Unpatched
from lightning_patches.patch import Impact, Upstream

VERDICTS = {
    "feature": "No release of Lightning has this",
    "environment": "The cause is outside of Lightning",
    "event": "",
}
"""Group -> the verdict, before the title."""


@lru_cache(maxsize=None)
def frequent() -> tuple[Unpatched, ...]:
    """Return all records in the order of the file."""
    text = (pkgutil.get_data(__package__, "frequent.txt") or b"").decode("utf-8")
    joined = re.sub(r"\n {3,}", " ", re.sub(r"(?m)^#.*\n", "", text))
    return tuple(_record(block.splitlines()) for block in joined.strip().split("\n\n"))


def _record(lines: list[str]) -> Unpatched:
    name, group, title = lines[0].split(" | ", 2)
    fields: dict[str, list[str]] = defaultdict(list)
    for line in lines[1:]:
        key, _, value = line.strip().partition(": ")
        fields[key].append(value)
    words = {key: tuple(" ".join(values).split()) for key, values in fields.items()}
    one = {key: values[0] for key, values in fields.items()}
    return Unpatched(
        name,
        title,
        cast(Any, group),
        Upstream(issues=tuple(map(int, words.get("issues", ()))), fixed_in=one.get("fixed")),
        Impact(
            one["why"],
            (*fields["says"], *fields["proof"]),
            one.get("error", ""),
            words.get("frames", ()),
            one.get("if", ""),
        ),
        one["do"],
        words.get("affected", ()),
        distributions=words.get("distributions", ()),
        is_shared="only" in one,
        proofs=tuple(fields["proof"]),
        behind=words.get("behind", ()),
    )


def verdict(record: Unpatched) -> str:
    """Return the verdict on a record, a sentence without its full stop."""
    return ": ".join(filter(None, (VERDICTS[record.group], record.title)))
