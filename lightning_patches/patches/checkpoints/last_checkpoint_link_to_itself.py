"""last.ckpt does not become a link to itself."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _save_last_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    code = original.__code__

    def links(self: Any) -> bool:
        if "link" in code.co_consts:  # 2.2 and later
            return bool(self.save_last == "link")
        if "protocol" in code.co_names:  # up to 2.1.2, where _fs.protocol is a string with an fsspec of that time
            return bool(self._fs.protocol == "file")
        return "://" not in self.last_model_path

    def save_last_checkpoint(self: Any, trainer: Any, monitor_candidates: Any) -> None:
        if self._last_checkpoint_saved == self.last_model_path and self.save_top_k != 0 and links(self):
            self._last_checkpoint_saved = ""  # last.ckpt is the only checkpoint: save it again instead of linking it
        original(self, trainer, monitor_candidates)

    return save_last_checkpoint


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "last.ckpt is a checkpoint instead of a broken link"),
    affected=(">=2.1.0,<2.6.0",),
    targets=(
        Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint._save_last_checkpoint", _save_last_checkpoint),
    ),
    upstream=Upstream(
        pull_requests=(21186,),
        commit="9eb3740339",
        fixed_in="2.6.0",
        tests=(
            "tests/tests_pytorch/callbacks/test_model_checkpoint_additional_cases.py::test_model_checkpoint_save_last_link_symlink_bug",
        ),
    ),
    impact=Impact(
        "With save_last='link' (2.1: save_last=True) and every_n_epochs of three or more, last.ckpt is deleted "
        "and replaced by a link to itself: until the next save the run has no checkpoint, and cannot be "
        "resumed.",
        ("last.ckpt is a link to itself", "OSError: [Errno 40] Too many levels of symbolic links"),
        consequences=(
            Consequence(
                ("last.ckpt ... not found. Aborting", "Checkpoint file not found: ... last.ckpt"),
                r"last(?:-v\d+)?\.ckpt",
                "last.ckpt is a link to itself",
            ),
        ),
    ),
    note="The official fix leaves last.ckpt unchanged; this patch saves it again with the newest state. Links to "
    "other checkpoints and copies are unchanged.",
)
