"""Run a patch's program on stock and with the shim.

PROGRAM = Program("csv-logger-flush", "2.0.4")
stock, shim = PROGRAM.both("step")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.variants import Result, Variant, distribution_of, run


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
            self.scenario or self.patch.replace("-", "_"), variant, case, toggle=selected if shim else None,
            **{**self.options, **options},
        )  # fmt: skip

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
