"""Training that SIGTERM ends exits with status 143 instead of 0."""

import signal
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_STATUS = 128 + signal.SIGTERM


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any) -> None:  # noqa: N807
        original(self, *(args or (_STATUS,)))

    return __init__


def _run(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def _run(self: Any) -> bool:
        # Don't kill the main process because a rank stopped after SIGTERM: the main process may be saving a checkpoint.
        # Without the patch such a rank has status 0.
        statuses = [process.poll() for process in self._child_processes]
        if any(status not in (None, 0, _STATUS) for status in statuses):
            return original(self)
        return None not in statuses

    return _run


PATCH = Patch(
    group="correctness",
    changes_results=Effect("how it ends", "the exit status after SIGTERM"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.utilities.exceptions:SIGTERMException.__init__", _init, adds=True),
        Target("fabric.strategies.launchers.subprocess_script:_ChildProcessObserver._run", _run, since="2.1.0"),
    ),
    upstream=Upstream(
        issues=(19916,),
        pull_requests=(21623,),
        commit="f4027f79f6",
        tests=("tests/tests_pytorch/trainer/connectors/test_signal_connector.py::test_sigterm_exception_exit_code",),
        merged=True,
    ),
    impact=Impact(
        "Training that is interrupted by SIGTERM exits with status 0: schedulers, pipelines and `train.py && "
        "next.py` treat it as complete.",
        ("exit code 0 after SIGTERM", "preempted job is marked as completed"),
    ),
    note="When one rank exits with this status, the process that started the other ranks is not killed; the "
    "official fix, which is merged but not released, kills it. A script that raises SIGTERMException with "
    "a message keeps its exit status. A script that wants status 0 can catch the exception and call "
    "sys.exit(0). Without the patch, call sys.exit(143) where the script catches SIGTERMException.",
)
