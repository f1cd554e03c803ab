"""Names that Lightning 2.x removed: the rows of ``removed.txt``."""

from __future__ import annotations

import pkgutil
import re
from functools import lru_cache
from typing import Literal, NamedTuple, Optional

from lightning_patches.patch import Group, Impact, Upstream

Kind = Literal["module", "name", "argument", "value", "attribute", "hook", "hook argument"]

_FORMS: tuple[tuple[Kind, str], ...] = (
    ("module", r"import (?P<owner>)(?P<name>[\w.]+)"),
    ("name", r"from (?P<owner>[\w.]+) import (?P<name>\w+)"),
    ("hook", r"def (?P<owner>)(?P<name>\w+)"),
    ("hook argument", r"def (?P<owner>\w+)\((?P<name>\w+)\)"),
    ("argument", r"(?P<owner>[\w.]+)\((?P<name>\w+)=\)"),
    ("value", r'Trainer\((?P<owner>\w+)="(?P<name>\w+)"\)'),
    ("attribute", r"(?P<owner>\w+)\.(?P<name>\w+)"),
)
_NEVER_CALLED = "never called: "


class Removed(NamedTuple):
    """A name that was removed.

    Args:
        name: name in the row, ``"Trainer(gpus=)"``; modules without ``pytorch_lightning.``.
        kind: kind of the name.
        owner: the module of a name, the class of an attribute, or the function of an argument; ``"Trainer"``.
        member: the part of the name that was removed; ``"gpus"``.
        gone: first release without it.
        instead: replacement in 2.x.
        is_silent: True if 2.x raises no error, because the name is a hook that is no longer called.
    """

    name: str
    kind: Kind
    owner: str
    member: str
    gone: str
    instead: str
    is_silent: bool

    # Attributes that `diagnose` also reads from patches and from bugs without a patch.
    group: Group = "compat"
    upstream: Upstream = Upstream()
    fixed_in: Optional[str] = None

    @property
    def title(self) -> str:
        return f"Lightning {self.gone} and later does not have {self.name}"

    @property
    def affected(self) -> tuple[str, ...]:
        return (f">={self.gone}",)

    @property
    def impact(self) -> Impact:
        what = "never calls it" if self.is_silent else "does not have it"
        return Impact(f"{self.name} belongs to Lightning below {self.gone}. This release {what}.")


@lru_cache(maxsize=None)
def rows() -> tuple[Removed, ...]:
    """Return all rows in the order of the file.

    Raises:
        ValueError: a row has an unknown form.
    """
    text = (pkgutil.get_data(__package__, "removed.txt") or b"").decode("utf-8")
    return tuple(_row(line.strip()) for line in text.splitlines() if line.strip() and not line.startswith("#"))


def _row(line: str) -> Removed:
    what, gone, instead = (part.strip() for part in line.split("|"))
    for kind, form in _FORMS:
        match = re.fullmatch(form, what)
        if match is not None:
            owner = match["owner"].lstrip(".")
            silent = instead.startswith(_NEVER_CALLED)
            return Removed(
                what, kind, owner, match["name"], gone, instead[len(_NEVER_CALLED) :] if silent else instead, silent
            )
    raise ValueError(f"{what} has an unknown form")


def find(kind: Kind, member: str, owner: Optional[str] = None) -> Optional[Removed]:
    """Return the first row with this kind and member, and with this owner if one is given."""
    found = (row for row in rows() if (row.kind, row.member) == (kind, member))
    return next((row for row in found if owner in (None, row.owner)), None)
