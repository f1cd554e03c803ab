"""last.ckpt, the only checkpoint yet, is replaced by a link to itself."""

from _expect import bug, same, same_calls

EXPECT = [
    bug(stock={"there": True, "linked": True, "step": None}, patched={"there": True, "linked": False, "step": 4}),
    same("every", "link to another file stays a link", {"there": True, "linked": True, "step": 4}),
    same_calls("asked_early", "program without links sees the previous checkpoint", on=("2.1.0", "2.1.4", "2.5.5")),
]

import os
from pathlib import Path

import _scenario as scenario
import fsspec.implementations.local

# 2.1.0 to 2.1.2 create links only with an older fsspec, which has this attribute.
fsspec.implementations.local.LocalFileSystem.protocol = "file"

if __name__ == "__main__":
    directory = Path.cwd()
    callback = scenario.pl.callbacks.ModelCheckpoint(
        directory,
        every_n_epochs=1 if scenario.CASE == "every" else 3,
        save_top_k=-1,
        save_last=True if scenario.pl.__version__.startswith("2.1.") else "link",
    )
    trainer = scenario.trainer(max_epochs=2, limit_train_batches=2, limit_val_batches=0, enable_checkpointing=True)
    trainer.callbacks.append(callback)
    trainer.fit(scenario.BoringModel())
    last = directory / "last.ckpt"
    step = scenario.torch.load(last, weights_only=False)["global_step"] if last.exists() else None
    scenario.observe(there=os.path.lexists(last), linked=last.is_symlink(), step=step)
