"""What a patch changes by design in a program that works, one line per patch where it does.

The record of the patch (`changes_results`) says it in words.
"""

BEGINS: dict[str, str] = {
    "frozen-batch-norm": r"state gradients |call SGD\.",
}
"""The lines with which a program begins to do something else; what follows are consequences."""

ONLY: dict[str, str] = {}
"""All lines that differ."""

SILENT: tuple[str, ...] = ()
"""Patches whose record says nothing, since no result changes."""
