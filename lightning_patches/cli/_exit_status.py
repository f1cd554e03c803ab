"""The exit statuses of the commands."""

from __future__ import annotations

from lightning_patches.errors import LightningPatchesError

OK = 0
NOT_APPLIED = 1
USAGE = 2
UNKNOWN = 3


class UsageError(LightningPatchesError):
    """The command line asks for something that does not exist. The command ends with status 2."""
