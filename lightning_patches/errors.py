"""The errors that this package raises, and the warning that it gives. Each inherits from the builtin that callers of
such code already catch."""


class LightningPatchesError(Exception):
    """Base of all errors raised by ``lightning_patches``."""


class ToggleError(LightningPatchesError, ValueError):
    """``LIGHTNING_PATCHES``, or the ``spec`` of :func:`lightning_patches.activate`, has an unknown item."""


class PatchError(LightningPatchesError, RuntimeError):
    """A selected patch was not applied under ``strict``."""


class TargetError(LightningPatchesError, AttributeError):
    """A target that a patch names is not where upstream keeps it."""


class LightningPatchesWarning(UserWarning):
    """Something that the user should change in the script, or know about a patch.

    ``warnings.filterwarnings("ignore", category=lightning_patches.LightningPatchesWarning)`` silences all of them.
    """
