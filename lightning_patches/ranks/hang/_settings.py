"""Parse ``LIGHTNING_PATCHES_HANG_TIMEOUT`` and the related variables."""

from __future__ import annotations

import os
import re
from typing import Mapping, Optional

from lightning_patches.notices import cut
from lightning_patches.ranks.hang import _files, _secret

VARIABLE = "LIGHTNING_PATCHES_HANG_TIMEOUT"
FORMS = "`300`, `300s`, `5m` or `1h`, each with or without `:abort`, or `off`"
_OFF = ("", "0", "off", "no", "none", "false", "disable", "disabled")
_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
LONGEST = 30 * 86400.0
SAMPLES_PER_TIMEOUT = 15
"""Minimum number of samples of a rank within one timeout."""
WATCHED = "ranks are watched for hangs"
"""Part of the line that every watched job prints once."""


def parse(text: str) -> Optional[tuple[float, bool]]:
    """Return the timeout in seconds and True to abort; ``None`` for "off".

    Raises:
        ValueError: the text is invalid. The message lists the valid forms.
    """
    text = text.strip().lower()
    if text in _OFF:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-z]*)\s*(:\s*abort)?", text)
    if found is not None and found[2] in _UNITS and 0 < float(found[1]) * _UNITS[found[2]] <= LONGEST:
        return float(found[1]) * _UNITS[found[2]], found[3] is not None
    raise ValueError(f"{VARIABLE}={cut(text)} is invalid, so ranks are not watched. Use {FORMS}.")


def needs(missing: str) -> str:
    """Return the message for a system that lacks a feature."""
    return f"the hang watch runs on Linux, and this system lacks {missing}"


def pause(timeout: float) -> float:
    """Return the seconds between two samples. Each rank sends its state at the same interval."""
    return min(max(timeout / SAMPLES_PER_TIMEOUT, 0.1), 5.0)


def problems(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the problems of the related variables, as sentences."""
    found = []
    port = environment.get(_secret.PORT_VARIABLE, "").strip()
    secret = environment.get(_secret.VARIABLE, "").strip()
    if port and _secret.as_port(port) is None:
        found.append(f"{_secret.PORT_VARIABLE}={port} is not a port and is ignored. Use a number from 1 to 65535.")
    others = [name for name in (_secret.PORT_VARIABLE, _secret.VARIABLE, _files.VARIABLE) if environment.get(name)]
    if others and not environment.get(VARIABLE, "").strip():
        found.append(f"{' and '.join(others)} without {VARIABLE}: ranks are not watched. Set {VARIABLE}.")
    if secret and len(secret) < _secret.SHORTEST:
        found.append(
            f"{_secret.VARIABLE} is shorter than {_secret.SHORTEST} characters and is ignored. Use a longer one, the "
            "same in all ranks, for example from `openssl rand -hex 16`."
        )
    return found
