"""Names of Lightning 1.x that 2.x has removed: the rows of ``removed.txt``."""

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
    """One row.

    Args:
        name: name in the row, ``"Trainer(gpus=)"``; modules without ``pytorch_lightning.``.
        kind: kind of the name.
        owner: the module of a name, the class of an attribute, the function of an argument.
        member: the module, name, argument, value, attribute or hook itself, ``"gpus"``.
        gone: first release without it.
        instead: replacement in 2.x.
        is_silent: True if 2.x raises no error, for a hook that is never called.
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
        what = "it is defined, and never called" if self.is_silent else "the release does not have it"
        return Impact(f"{self.name} is of Lightning below {self.gone}; {what}.")


@lru_cache(maxsize=None)
def rows() -> tuple[Removed, ...]:
    """All rows, in their order.

    Raises:
        ValueError: one is not of a known form.
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
    raise ValueError(f"{what} is of no known form")


def find(kind: Kind, member: str, owner: Optional[str] = None) -> Optional[Removed]:
    """The row of this kind and member, and of this owner if one is given."""
    found = (row for row in rows() if (row.kind, row.member) == (kind, member))
    return next((row for row in found if owner in (None, row.owner)), None)
