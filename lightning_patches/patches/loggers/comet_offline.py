"""CometLogger(online=False) writes its experiment to disk."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _create_experiment(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def create_experiment(self: Any) -> None:
        if self._online is False and "disabled" not in self._kwargs:
            import comet_ml  # type: ignore[import-not-found]

            self._comet_config = comet_ml.ExperimentConfig(**self._kwargs)
        original(self)

    return create_experiment


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "the experiment of CometLogger(online=False) is written to disk"),
    affected=(">=2.5.1,<=2.6.6",),
    targets=(Target("pytorch.loggers.comet:CometLogger._create_experiment", _create_experiment),),
    upstream=Upstream(issues=(21617,)),
    impact=Impact(
        "CometLogger(online=False) records nothing: Lightning disables the experiment instead of writing it to "
        "offline_directory.",
        ("CometLogger offline mode does not write an archive", "CometLogger(online=False) logs nothing"),
    ),
    note="The patch is equivalent to comet_ml.start(online=False) with the same options. To disable the "
    "experiment, as CometLogger(online=False) does without the patch, set COMET_MODE=DISABLED or pass "
    "disabled=True. Tested with a stand-in for comet_ml.",
)
