"""ModelCheckpoint does not delete the remote checkpoint that training was resumed from."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints._places import ckpt_path_of, directory_of, place_of, protocol_of


def _remove_remote(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        directory = directory_of(self, namespace)
        is_remote = protocol_of(str(filepath)) != "file"
        if not (is_remote and _has_to_stay(str(filepath), ckpt_path_of(trainer), directory)):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay(filepath: str, resumed_from: Any, dirpath: Any) -> bool:
    """True if training was resumed from the file, or the file is outside the callback's directory.

    Only names are compared, without a request to a server.
    """
    if resumed_from is not None and place_of(resumed_from) == place_of(filepath):
        return True
    if dirpath is None:
        return False
    (protocol, path), (where, directory) = place_of(filepath), place_of(dirpath)
    return protocol != where or not path.startswith(f"{directory}/")


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "the remote checkpoint that the run was resumed from is kept"),
    affected=(">=1.8.5.post0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint._remove_checkpoint", _remove_remote),),
    upstream=Upstream(issues=(21813,), proposed=(21819, 21867, 21910)),
    impact=Impact(
        "A resumed run with checkpoints on s3, gs or another remote file system deletes the checkpoint that was "
        "passed as ckpt_path, even if it belongs to another run.",
        ("the checkpoint I resumed from was deleted from the bucket", "previous run's checkpoint is deleted"),
        consequences=(
            Consequence(
                ("Checkpoint file not found: ...", "Checkpoint at ... not found. Aborting"),
                r"Restored all states from the checkpoint (?:file )?at (\w+://\S+)",
                "an earlier resumed run has deleted the checkpoint that was passed to it",
                is_sure=True,
            ),
        ),
    ),
    note="Other files of the run are still deleted, so that save_top_k keeps its meaning. For a subclass of "
    "ModelCheckpoint, which may store files elsewhere, only the file that the run was resumed from is "
    "kept. A program that expects a resumed run to delete it must delete it itself. Without the patch, "
    "use save_top_k=-1 in the resumed run.",
    after=("checkpoint-kept-on-resume",),
)
