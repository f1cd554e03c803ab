"""``lightning_patches/patches/_index.py``: the patches as a start needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning_patches import patches as catalogue
from lightning_patches.patch import Impact, Patch, Upstream, no_code

PATCHES = Path(catalogue.__file__).parent
DATA = PATCHES / "_index.py"
NO_IMPACT = Impact("")
HEAD = '''"""The patches without code: titles, and what selects and decides on them. Written by ``scripts/renew``."""

# fmt: off
# ruff: noqa: E501
from lightning_patches.patch import Effect, Impact, Need, Patch, Target, Upstream, no_code

NO_IMPACT = Impact("")
INDEX = (
'''


def text() -> str:
    return HEAD + "".join(f"    {_text(record(patch))},\n" for patch in catalogue.all_patches()) + ")\n"


def record(patch: Patch) -> Patch:
    file = patch.name.replace("-", "_")
    (path,) = PATCHES.glob(f"*/{file}.py")
    return Patch(
        patch.name,
        patch.title,
        patch.group,
        patch.affected,
        tuple(target._replace(build=no_code, stock=()) for target in patch.targets),
        Upstream(patch.upstream.issues, patch.upstream.pull_requests, fixed_in=patch.fixed_in),
        NO_IMPACT,
        changes_results=patch.changes_results,
        opt_in=patch.opt_in,
        witnesses=patch.witnesses,
        needs=patch.needs,
        probe=no_code if patch.probe is not None else None,
        module=f"{path.parent.name}.{file}",
    )


def _text(value: Any) -> str:
    if value is NO_IMPACT:
        return "NO_IMPACT"
    if value is no_code:
        return "no_code"
    if not isinstance(value, tuple):
        return repr(value)
    if type(value) is tuple:
        return f"({''.join(f'{_text(one)}, ' for one in value).rstrip(' ')})"
    stated = {name: one for name, one in value._asdict().items() if one != value._field_defaults.get(name, ...)}
    return f"{type(value).__name__}({', '.join(f'{name}={_text(one)}' for name, one in stated.items())})"
