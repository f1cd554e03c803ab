"""AsyncCheckpointIO can also save in the second run of a Trainer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _teardown(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def teardown(self: Any) -> None:
        try:
            original(self)
        finally:
            if type(self._executor) is ThreadPoolExecutor:  # the program may still need an executor of another class
                # The next run of the Trainer uses the new executor, which starts a thread only at its first save.
                self._executor = ThreadPoolExecutor(max_workers=self._executor._max_workers)

    return teardown


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.5.4",),
    targets=(Target("pytorch.plugins.io.async_plugin:AsyncCheckpointIO.teardown", _teardown),),
    upstream=Upstream(
        pull_requests=(20952,),
        commit="ff64a92624",
        fixed_in="2.5.4",
        tests=("tests/tests_pytorch/plugins/test_checkpoint_io_plugin.py::test_async_checkpoint_plugin",),
    ),
    impact=Impact(
        "With AsyncCheckpointIO, the second fit of a Trainer, or a fit after validate, fails at its first checkpoint.",
        ("cannot schedule new futures after shutdown",),
        error="RuntimeError: cannot schedule new futures after shutdown",
    ),
)
