"""Which functions a checkpoint may name, for ``load_from_checkpoint`` to call."""

from __future__ import annotations

_LIGHTNINGS_OWN = frozenset({"lightning.pytorch.cli.instantiate_module", "pytorch_lightning.cli.instantiate_module"})
_trusted: set[str] = set()


def trust_instantiator(path: str) -> None:
    """Let checkpoints name this function as the one that makes the model or datamodule, in this process.

    Without it only ``LightningCLI``'s own is allowed (patch ``checkpoint-instantiator``). Call it in the script, before
    ``load_from_checkpoint``. There is no environment variable for it: what a file may call is for the program to say.

    Args:
        path: dotted path of the function, exactly as the checkpoint has it (``"my_package.factories.build"``).

    Raises:
        TypeError: ``path`` is not a string; the function itself is not accepted, because the file holds a name.
        ValueError: ``path`` has no module part.
    """
    if not isinstance(path, str):
        raise TypeError(f"trust_instantiator() takes a dotted path as a string, not {path!r}")
    if "." not in path.strip("."):
        raise ValueError(f"{path!r} is not a dotted path such as 'my_package.factories.build'")
    _trusted.add(path)


def is_trusted_instantiator(path: object) -> bool:
    """Whether a checkpoint may name ``path``. Looks at the text only."""
    return isinstance(path, str) and (path in _LIGHTNINGS_OWN or path in _trusted)
