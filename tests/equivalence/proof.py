"""The expectation for a scenario: the bug on stock, and observations on which the other variants must agree.

Each case of a scenario is a :class:`Proof` in ``PROOFS`` of the patch's test, ``tests/patches/*/test_*.py``, usually
created by :func:`proofs`. A test fails for a patch without a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

from lightning_patches.patch import Need

COMPILE = Need("torch:compile")
Observations = list[dict[str, Any]]


def everything(observations: Observations) -> Any:
    """Return all observations of every rank."""
    return observations


@dataclass(frozen=True)
class Proof:
    """One case of one scenario.

    Args:
        patch: name of the patch; the scenario is the file of that name, with underscores.
        shows_bug: takes a result (see ``tests/support/variants.py``), and returns True if it shows the reported bug.
        case: passed to the scenario.
        simulated_cuda: the case needs CUDA devices, simulated or real.
        one_card: with ``simulated_cuda``: one real GPU, which two ranks share, is enough to show the bug.
        observed: the part of the observations in which shim, fork and official release must agree, exactly.
        recommended: for a bug that upstream never fixed, the case with the usage that the maintainers recommend. It
            runs on the stock release and replaces the official variant.
        recommended_observed: the part of that run's observations to compare; ``observed`` if ``None``. Set it if the
            recommended usage is observed in the same run.
        recommended_environment: variables of the recommended usage, if it is not part of the program.
        alone: shim and fork have only this patch, since the reference variant shows other bugs of the catalogue.
        since: first release with the API that the case uses; not needed for Fabric if ``case`` contains ``fabric``.
        fresh: the scenario needs a new Python process, see :func:`tests.support.variants.run`.
        needs: features of other packages that the program uses, and that ``scripts/_stacks.py`` checks.
        old_torch: newer torch versions have fixed the bug. The case runs with the Python of ``tests/support/old_torch``
            on the releases that it can import, and is skipped without it. Only for patches with a ``probe``.
        right: takes the result of a patched run, and returns True if it is right beyond the comparison.
        note: why a part is not compared.
        program: name of the scenario, if it is not the patch's.
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
    needs: tuple[Need, ...] = ()
    old_torch: bool = False
    right: Optional[Callable[[Any], bool]] = None
    note: str = ""
    program: str = ""

    @property
    def scenario(self) -> str:
        return self.program or self.patch.replace("-", "_")

    def __str__(self) -> str:
        return f"{self.patch}:{self.case}" if self.case else self.patch


def proofs(
    patch: str, shows_bug: Callable[[Any], bool], *cases: str, recommended: Optional[str] = None, **fields: Any
) -> tuple[Proof, ...]:
    """Return a proof for each case, or for the program without a case.

    Args:
        patch: see :class:`Proof`, also for ``shows_bug`` and ``fields``.
        cases: the cases.
        recommended: as in :class:`Proof`, with ``{}`` for the case.
    """
    return tuple(
        Proof(patch, shows_bug, case, recommended=None if recommended is None else recommended.format(case), **fields)
        for case in cases or ("",)
    )


def ends_with(message: str) -> Callable[[Any], bool]:
    """Return a check that the program fails and prints the message."""

    def shows_bug(result: Any) -> bool:
        return not result.ok and message in result.output

    return shows_bug


def observes(*ranks: dict[str, Any]) -> Callable[[Any], bool]:
    """Return a check that the ranks have exactly these observations."""
    return lambda result: result.observations == list(ranks)


def only(*names: str) -> Callable[[Observations], Any]:
    """Return a function that selects these observations of every rank."""
    return lambda observations: [{name: rank[name] for name in names} for rank in observations]


def sees(check: Callable[[dict[str, Any]], bool]) -> Callable[[Any], bool]:
    """Return a check of the first rank's observations. It is False without observations."""
    return lambda result: bool(result.observations) and check(result.observations[0])
