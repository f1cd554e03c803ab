"""self.log moves a metric only if it is on another device."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.logging._device import is_on

_RESULT = "pytorch.trainer.connectors.logger_connector.result"


def _to(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and is_on(self, args[0]):
            return self
        return original(self, *args, **kwargs)

    return to


PATCH = Patch(
    group="performance",
    affected=(">=2.4.0,<=2.6.6",),
    targets=(Target(f"{_RESULT}:_ResultMetric.to", _to),),
    witnesses=(f"{_RESULT}:_ResultCollection.log",),
    upstream=Upstream(issues=(20388,)),
    impact=Impact(
        "Each self.log takes about 0.2 ms more than in 2.3: training of a small model that logs several values per "
        "step can be several times slower.",
        ("self.log is slow since 2.4.0", "training slower after upgrade to 2.4"),
    ),
    note="A metric on another device than the logged value, for example after an earlier fit or a search, is "
    "still moved.",
)
