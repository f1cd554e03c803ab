"""Run a patch's program on stock and with the shim, and create the tests that most patches need.

A test imports the parts of its proofs from here, too.

PROGRAM = Program("csv-logger-flush", "2.0.4")
test_given_steps_are_logged_unchanged = PROGRAM.unchanged("step")
PROOFS = PROGRAM.proofs(observes({"rows": 0}), right=observes({"rows": 2}))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import pytest

from tests.equivalence.proof import COMPILE, Observations, Proof, ends_with, everything, observes, only, proofs, sees
from tests.support.variants import Result, Variant, distribution_of, run

__all__ = [
    "COMPILE",
    "Observations",
    "Program",
    "Proof",
    "ends_with",
    "everything",
    "observes",
    "only",
    "proofs",
    "sees",
]
Check = Callable[[Result], bool]


@dataclass(frozen=True)
class Program:
    """The scenario of a patch.

    Args:
        patch: name of the patch; the scenario is the file of that name, with underscores.
        version: release, unless a method gets another one.
        distribution: see :func:`tests.support.variants.distribution_of` for the default.
        alone: the shim has this patch only.
        toggle: value of ``LIGHTNING_PATCHES`` with the shim. By default the shim has the default patches and this one.
        scenario: another program than the patch's.
        options: other arguments of :func:`tests.support.variants.run`.
    """

    patch: str
    version: str
    distribution: str = ""
    alone: bool = False
    toggle: str = ""
    scenario: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def run(
        self,
        case: str = "",
        version: str = "",
        shim: bool = False,
        *,
        distribution: str = "",
        toggle: str = "",
        **options: Any,
    ) -> Result:
        """Run the program. Arguments override the fields of this object."""
        version = version or self.version
        variant = Variant(distribution or self.distribution or distribution_of(version), version, shim)
        selected = toggle or self.toggle or (self.patch if self.alone else f"default,{self.patch}")
        return run(
            self.scenario or self.patch.replace("-", "_"),
            variant,
            case,
            toggle=selected if shim else None,
            **{**self.options, **options},
        )

    def stock(self, case: str = "", version: str = "", **options: Any) -> Result:
        return self.run(case, version, **options)

    def shim(self, case: str = "", version: str = "", **options: Any) -> Result:
        return self.run(case, version, shim=True, **options)

    def both(self, case: str = "", version: str = "", **options: Any) -> tuple[Result, Result]:
        """Run the program on stock and with the shim."""
        return self.stock(case, version, **options), self.shim(case, version, **options)

    def counts(self, case: str = "", version: str = "", **options: Any) -> tuple[list[Any], list[Any]]:
        """Return what each rank ``counted`` on stock and with the shim, where all other observations must be equal."""
        stock, shim = self.both(case, version, **options)
        assert stock.ok and shim.ok, (stock, shim)
        counted = tuple([rank.pop("counted") for rank in result.observations] for result in (stock, shim))
        assert stock.observations == shim.observations, (stock, shim)
        return counted  # type: ignore[return-value]

    def unchanged(
        self,
        *cases: str,
        on: Sequence[str] = (),
        check: Optional[Check] = None,
        observed: Callable[[Observations], Any] = everything,
        ends_well: bool = True,
        **options: Any,
    ) -> Callable[..., None]:
        """Return a test that these cases do the same with the shim as on stock.

        Args:
            cases: the cases; the program without a case if empty.
            on: releases; the program's release if empty.
            check: takes the result, and returns True if it shows what the test is about.
            observed: the compared part of the observations.
            ends_well: False if the program must fail on stock.
            options: see :meth:`run`.
        """

        def test(case: str, version: str) -> None:
            stock, shim = self.both(case, version, **options)
            assert stock.ok is shim.ok is ends_well, (stock, shim)
            assert stock.observations and observed(stock.observations) == observed(shim.observations), (stock, shim)
            assert check is None or check(stock), stock

        return self._parametrized(test, cases, on)

    def warns(
        self, *cases: str, says: str, on: Sequence[str] = (), check: Optional[Check] = None, **options: Any
    ) -> Callable[..., None]:
        """Return a test that these cases do the same with the shim as on stock, and get one warning in rank zero.

        The program must observe its ``warnings``.

        Args:
            cases: the cases; the program without a case if empty.
            says: a part of the warning.
            on: releases; the program's release if empty.
            check: takes the result on stock, and returns True if it shows the bug.
            options: see :meth:`run`.
        """

        def test(case: str, version: str) -> None:
            stock, shim = self.both(case, version, **options)
            assert check is None or check(stock), stock
            first, *others = (rank.pop("warnings") for rank in shim.observations)
            assert len(first) == 1 and says in first[0] and not any(others), (first, others)
            assert not any(rank.pop("warnings") for rank in stock.observations), stock
            assert stock.ok and shim.ok and stock.observations == shim.observations, (stock, shim)

        return self._parametrized(test, cases, on)

    def fixed(
        self,
        *cases: str,
        bug: Optional[Check] = None,
        right: Optional[Check] = None,
        like: str = "",
        reference: str = "",
        on: Sequence[str] = (),
        **options: Any,
    ) -> Callable[..., None]:
        """Return a test that these cases show the bug on stock, and succeed with the right result with the shim.

        Args:
            cases: the cases; the program without a case if empty.
            bug: takes the result, and returns True if it shows the bug; if ``None``, stock must differ.
            right: takes the result with the shim, and returns True if it is right.
            like: fixed release, whose observations must equal those with the shim.
            reference: case whose observations on stock must equal those with the shim; ``{}`` stands for the case.
            on: releases; the program's release if empty.
            options: see :meth:`run`.
        """

        def test(case: str, version: str) -> None:
            stock, shim = self.both(case, version, **options)
            expected = None
            if like or reference:
                same = {"distribution": self.distribution or distribution_of(version), **options}
                expected = self.stock(reference.format(case) or case, like or version, **same)
                assert shim.observations == expected.observations, (shim, expected)
            if bug is None:
                assert expected is not None and stock.observations != expected.observations, stock
            else:
                assert bug(stock) and not bug(shim), (stock, shim)
            assert shim.ok and (right is None or right(shim)), shim

        return self._parametrized(test, cases, on)

    def proof(self, shows_bug: Check, case: str = "", **fields: Any) -> Proof:
        """Return the patch's proof of one case."""
        return Proof(self.patch, shows_bug, case, **fields)

    def proofs(self, shows_bug: Check, *cases: str, **fields: Any) -> tuple[Proof, ...]:
        """Return the patch's proofs, see :func:`tests.equivalence.proof.proofs`."""
        return proofs(self.patch, shows_bug, *cases, **fields)

    def _parametrized(self, test: Callable[..., None], cases: Sequence[str], on: Sequence[str]) -> Callable[..., None]:
        test = pytest.mark.parametrize("version", on or (self.version,))(test)
        marked: Callable[..., None] = pytest.mark.parametrize("case", cases or ("",))(test)
        return marked
