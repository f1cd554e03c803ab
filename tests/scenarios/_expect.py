"""The rows of ``EXPECT``, which say what a patch's program shows.

EXPECT = [
    bug("", "writes every second row", stock={"steps": [0, 1, 0]}, patched=RIGHT, like="step"),
    same("step", "each row has a step", RIGHT, on=("2.1.0", "2.6.6")),
]

pytest executes a program up to ``EXPECT`` to read the rows, so everything above works without Lightning. An expected
result is one of:

- a dict: rank zero observes these values, and maybe others; a list of dicts: the ranks do
- a str: the program fails, and prints it
- a function of rank zero's observations that returns True; :func:`whole_run` wraps a function of the whole result
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Union


@dataclass(frozen=True, eq=False)
class Row:
    """A row of the table.

    Args:
        kind: name of the function that made it.
        case: the case, or several; "" for the program without a case.
        what: a few words about the row; the first line of the program's docstring if empty.
        stock: what stock shows.
        patched: what a patched run shows. Without ``stock``, it is what stock does not show.
        warning: part of the only warning.
        like: the case whose stock run is right, where ``{}`` stands for the case. Without it, the first fixed release
            is right.
        like_variables: variables of that run.
        compare: names of the compared observations, or a function that takes the observations of all ranks and returns
            what is compared; by default everything.
        compare_like: the same for the run that is right, if it differs.
        on: the releases; by default the newest affected one. A ``bug`` runs at the ends of the patch's range.
        since: first release with the API that the case uses; not needed for Fabric if the case contains ``fabric``.
        alone: the patched run has only this patch; by default it also has the default patches. In a ``bug`` it has the
            other fixes of the fixed release: ``alone`` leaves these out.
        toggle: value of ``LIGHTNING_PATCHES`` in the patched run.
        program: another program than this file.
        simulated_cuda: run with two simulated GPUs.
        one_card: one real GPU, which two ranks share, is enough to show the bug.
        fresh: run in a new Python process. By default the process is forked from one that has imported torch.
        needs: features that the program uses: ``"torch:compile"``, ``"torch.optim:SGD fused"``.
        old_torch: newer torch releases have fixed the bug. Only for patches with a ``probe``.
        patch: the patch; set when the row is read.
    """

    kind: str
    case: Union[str, Sequence[str]] = ""
    what: str = ""
    stock: Any = None
    patched: Any = None
    warning: str = ""
    like: Optional[str] = None
    like_variables: tuple[tuple[str, str], ...] = ()
    compare: Any = None
    compare_like: Any = None
    on: Union[str, Sequence[str]] = ()
    since: str = ""
    alone: bool = False
    toggle: str = ""
    program: str = ""
    simulated_cuda: bool = False
    one_card: bool = False
    fresh: bool = False
    needs: tuple[str, ...] = ()
    old_torch: bool = False
    patch: str = ""

    def __str__(self) -> str:
        return f"{self.patch}:{self.case}" if self.case else self.patch


def bug(case: Union[str, Sequence[str]] = "", what: str = "", **fields: Any) -> Row:
    """Stock shows ``stock``. Shim and diff agree with the fixed release, or with stock in the case ``like``."""
    return Row("bug", case, what, **fields)


def fixed(case: Union[str, Sequence[str]] = "", what: str = "", **fields: Any) -> Row:
    """The same for the shim on other releases. With ``patched``, the fixed release does not run."""
    return Row("fixed", case, what, **fields)


def same(case: Union[str, Sequence[str]], what: str, stock: Any = None, **fields: Any) -> Row:
    """Stock and shim agree, and end well unless ``stock`` is a str."""
    return Row("same", case, what, stock, **fields)


def patched(case: Union[str, Sequence[str]], what: str, patched: Any, **fields: Any) -> Row:
    """The shim shows this; stock does not run."""
    return Row("patched", case, what, patched=patched, **fields)


def warns(case: Union[str, Sequence[str]], what: str, warning: str, **fields: Any) -> Row:
    """Stock and shim agree, but rank zero's observed ``warnings`` have one more with the shim."""
    return Row("warns", case, what, warning=warning, **fields)


def same_calls(case: str, what: str, **fields: Any) -> Row:
    """With this patch alone, a program of ``tests/differential`` does the same and makes the same calls as on stock.

    Args:
        case: name of the program; ``"name: kind"`` adds an extension of this kind.
    """
    return Row("same_calls", case, what, **fields)


@dataclass(frozen=True)
class whole_run:  # noqa: N801
    """A check of a result: its ``ok``, ``output``, and the ``observations`` of all ranks."""

    check: Callable[[Any], bool]
