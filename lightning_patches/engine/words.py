"""The words of ``LIGHTNING_PATCHES`` that can be parsed without the catalogue.

Python loads this module at start-up if the patches are enabled by ``run`` or ``autostart``. So it imports nothing.
"""

VARIABLE = "LIGHTNING_PATCHES"
DEFAULT_WORDS = frozenset({"1", "on", "true", "yes", "default"})
NOTHING_WORDS = frozenset({"0", "off", "false", "no", "none"})
FLAG_WORDS = frozenset({"strict", "quiet"})
ALL_WORD = "all"
SAME_RESULTS_WORD = "same-results"
EXACT: "dict[str, frozenset[str]]" = {
    "exact-resume": frozenset(
        {
            "double-precision-restored",
            "epoch-start-on-resume",
            "finder-on-resume",
            "finetuning-resumed",
            "last-checkpoint-remote",
            "mid-epoch-resume",
            "pruning-resumed",
            "reload-on-resume",
            "reload-starts-once",
            "resume-after-last-batch",
            "resume-infinite-validation",
            "resume-on-last-batch",
            "resume-single-iteration",
            "resumed-epoch-mean",
            "resumed-metrics",
            "stateful-loader-exact",
            "stateful-loader-restored",
            "swa-finished-run",
            "validation-due-on-resume",
            "validation-on-resume",
            "warn-resumed-run",
            "weight-averaging-restored",
        }
    ),
    "exact-data": frozenset(
        {
            "batch-sampler-shuffled",
            "best-path-of-rank-zero",
            "distributed-sampler-without-seed",
            "fabric-batch-sampler-shuffled",
            "loader-sampler-kept",
            "plateau-of-all-ranks",
            "positional-loader-arguments",
            "sampler-epoch-on-resume",
            "sampler-seed-of-rank-zero",
            "sampler-set-epoch",
            "warn-sampler-replaced",
        }
    ),
    "exact-logging": frozenset(
        {
            "logged-in-double-precision",
            "monitor-after-each-validation",
            "step-values-of-their-step",
            "warn-monitor-late",
        }
    ),
    "exact-fabric": frozenset({"fabric-equals-torch", "fabric-methods-in-precision", "one-scaler-update"}),
}
"""The patches, including opt-in ones, that each of these words selects."""

EXACT["exact"] = frozenset().union(*EXACT.values())
WORDS = DEFAULT_WORDS | NOTHING_WORDS | FLAG_WORDS | {ALL_WORD, SAME_RESULTS_WORD} | set(EXACT)


def split(text: str) -> "list[str]":
    """Split a toggle into items in lower case. ``PR #21068``, as in the output of ``list``, is one item."""
    return text.replace(",", " ").lower().replace("pr #", "pr").replace("pr ", "pr").split()


def asks_for_patches(text: "str | None") -> bool:
    """True if a value of the variable requests patches: not unset, not blank, and not a word for "nothing".

    ``import lightning_patches`` also applies the default set if the value is unset or blank.
    """
    items = split(text or "")
    return bool(items) and not (len(items) == 1 and items[0] in NOTHING_WORDS)


def are_plain(text: str) -> bool:
    """True if all items can be parsed without the catalogue."""
    return WORDS.issuperset(split(text))
