"""What a scenario has to show: the bug in the stock variant, and what the other variants must agree on.

Each case of a scenario that takes part in the equivalence is a :class:`Proof`. The proofs stand in ``PROOFS`` of the
patch's test, ``tests/patches/*/test_*.py``. A patch without one is not proven, and a test says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

Observations = list[dict[str, Any]]


def everything(observations: Observations) -> Any:
    """All that was observed, of every rank."""
    return observations


@dataclass(frozen=True)
class Proof:
    """One case of one scenario.

    Args:
        patch: name of the patch; the scenario is the file of that name, with underscores.
        shows_bug: whether a run shows the bug as it was reported; gets its result (see ``tests/support/variants.py``).
        case: handed to the scenario.
        simulated_cuda: the case needs CUDA devices, simulated or real.
        one_card: with ``simulated_cuda``: a single real GPU, which two ranks share, is enough to show it.
        observed: the part of the observations in which shim, fork and official release must agree, exactly.
        recommended: for a bug that upstream never fixed, the case that does what the maintainers recommend; it runs
            in the stock release and takes the place of the official variant.
        recommended_observed: the part of that run's observations that takes part in the comparison; ``observed`` if
            ``None``. Set it where the recommended usage is observed in the same run.
        recommended_environment: variables that make the recommended usage, where it is not up to the program.
        alone: shim and fork have this patch only; for a reference variant that shows other bugs of the catalogue.
        since: first release with the API that the case is written against.
        fresh: the scenario needs a Python that was started anew, see :func:`tests.support.variants.run`.
        old_torch: torch has mended the bug by itself: the case runs with the Python of ``tests/support/old_torch``, on
            the releases that can be imported there, and is skipped where there is none. For patches
            with a ``probe``, and for no others.
        right: whether a cured run is right, beyond observing what the reference does; gets its result. For what the
            comparison leaves out, and for what the reference is to be right about.
        note: why something was left out of the comparison, for the record.
    """

    patch: str
    shows_bug: Callable[[Any], bool]
    case: str = ""
    simulated_cuda: bool = False
    one_card: bool = False
    observed: Callable[[Observations], Any] = everything
    recommended: Optional[str] = None
    recommended_observed: Optional[Callable[[Observations], Any]] = None
    recommended_environment: tuple[tuple[str, str], ...] = ()
    alone: bool = False
    since: str = ""
    fresh: bool = False
    old_torch: bool = False
    right: Optional[Callable[[Any], bool]] = None
    note: str = ""

    @property
    def scenario(self) -> str:
        return self.patch.replace("-", "_")

    def __str__(self) -> str:
        return f"{self.patch}:{self.case}" if self.case else self.patch


def ends_with(message: str) -> Callable[[Any], bool]:
    """The program fails, and the message is in what the user reads."""

    def shows_bug(result: Any) -> bool:
        return not result.ok and message in result.output

    return shows_bug


def observes(*ranks: dict[str, Any]) -> Callable[[Any], bool]:
    """The ranks observed just this."""
    return lambda result: result.observations == list(ranks)


def only(*names: str) -> Callable[[Observations], Any]:
    """These observations, of every rank."""
    return lambda observations: [{name: rank[name] for name in names} for rank in observations]


def sees(check: Callable[[dict[str, Any]], bool]) -> Callable[[Any], bool]:
    """What the first rank observed is so; of a program that observed nothing it is not."""
    return lambda result: bool(result.observations) and check(result.observations[0])
