"""last.ckpt is an absolute link, and breaks when its folder is moved."""

from _expect import bug, whole_run

EXPECT = [
    bug(
        stock={"linked": True, "there": False},
        patched=whole_run(lambda result: result.observations[0]["there"]),
        compare="there",
    )
]

from pathlib import Path

import _scenario as scenario
import fsspec.implementations.local

# 2.1.0 to 2.1.2 create links only with an older fsspec, which has this attribute.
fsspec.implementations.local.LocalFileSystem.protocol = "file"

if __name__ == "__main__":
    directory = Path.cwd()
    callback = scenario.pl.callbacks.ModelCheckpoint(directory / "run", save_last=True)
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, enable_checkpointing=True)
    trainer.callbacks.append(callback)
    trainer.fit(scenario.BoringModel())
    linked = (directory / "run" / "last.ckpt").is_symlink()
    (directory / "run").rename(directory / "kept")
    scenario.observe(linked=linked, there=(directory / "kept" / "last.ckpt").exists())
