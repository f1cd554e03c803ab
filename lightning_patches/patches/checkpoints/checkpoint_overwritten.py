"""ModelCheckpoint with a fixed file name always uses that name, instead of two names in turn."""

from typing import Any, Callable, Optional

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints._places import ckpt_path_of, place_of

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def _overwriting_own(original: Callable[..., str], namespace: str) -> Callable[..., str]:
    def get_name(self: Any, monitor_candidates: Any, trainer: Any, del_filepath: Optional[str] = None) -> str:
        own = self.best_model_path
        if self.monitor is None and self.save_top_k == 1 and own and not _is_resumed_from(own, ckpt_path_of(trainer)):
            del_filepath = own
        return original(self, monitor_candidates, trainer, del_filepath)

    return get_name


def _is_resumed_from(filepath: str, resumed_from: Any) -> bool:
    return resumed_from is not None and place_of(resumed_from) == place_of(filepath)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "a fixed file name is used for each save"),
    affected=(">=1.8.0,<2.1.3",),
    targets=(Target(f"{_CALLBACK}._get_metric_interpolated_filepath_name", _overwriting_own),),
    witnesses=(f"{_CALLBACK}._save_none_monitor_checkpoint",),
    upstream=Upstream(
        pull_requests=(19064,),
        commit="482da0a140",
        fixed_in="2.1.3",
        tests=("tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_none_monitor_not_alternating",),
    ),
    impact=Impact(
        "ModelCheckpoint(filename='best') without a monitor writes best.ckpt and best-v1.ckpt in turn, and "
        "each save deletes the other file: after every second save, best.ckpt is missing.",
        ("best.ckpt is missing and best-v1.ckpt is there", "checkpoint alternates between best and best-v1"),
        consequences=(
            Consequence(
                ("No such file or directory: ... best.ckpt",),
                r"Trainer\.fit.? stopped",
                "ModelCheckpoint may have saved best-v1.ckpt last, and deleted best.ckpt",
            ),
        ),
    ),
    note="The patch acts only with save_top_k=1, the default. With save_top_k=-1, each save is kept; the "
    "official fix overwrites files there, too. A file that the training was resumed from is kept.",
)
