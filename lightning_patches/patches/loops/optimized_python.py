"""Training works in a program that Python runs with -O."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _next(original: Callable[[Any], Any], namespace: str) -> Callable[[Any], Any]:
    def __next__(self: Any) -> Any:  # noqa: N807  it replaces a method of this name
        if __debug__:
            return original(self)
        self._start_profiler()
        try:
            batch = next(self.iterator)
        except StopIteration:
            self.done = True
            raise
        finally:
            self._stop_profiler()
        self.fetched += 1
        if self.length is not None:
            self.done = self.length <= self.fetched
        return batch

    return __next__


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=("==2.0.8",),
    targets=(Target("pytorch.loops.fetchers:_DataFetcher.__next__", _next),),
    upstream=Upstream(pull_requests=(18496,), commit="023a18cd0e", fixed_in="2.0.9"),
    impact=Impact(
        "With `python -O` or PYTHONOPTIMIZE, all training, evaluation and prediction fails at the first batch.",
        ("cannot access local variable 'iterator'", "local variable 'iterator' referenced before assignment"),
        error="UnboundLocalError: cannot access local variable 'iterator' where it is not associated with a value",
        frames=("/pytorch/loops/fetchers.py",),
    ),
)
