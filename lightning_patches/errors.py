"""The exceptions and the warning category of this package. Each inherits from a builtin that programs already catch."""


class LightningPatchesError(Exception):
    """Base of all errors raised by ``lightning_patches``."""


class ToggleError(LightningPatchesError, ValueError):
    """``LIGHTNING_PATCHES``, or the ``spec`` of :func:`lightning_patches.activate`, has an unknown item."""


class InvalidToggleError(ToggleError, SystemExit):
    """``import lightning_patches`` raises it: if nothing catches it, the program ends with one line, status 1."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = message


class PatchError(LightningPatchesError, RuntimeError):
    """A selected patch was not applied under ``strict``."""


class TargetError(LightningPatchesError, AttributeError):
    """Lightning does not have the attribute that a patch replaces."""


class LightningPatchesWarning(UserWarning):
    """Something that the user should change in the script, or know about a patch.

    ``warnings.filterwarnings("ignore", category=lightning_patches.LightningPatchesWarning)`` silences all of them.
    """
