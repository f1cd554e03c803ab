"""A run that ends before its first validation leaves no checkpoint."""

from _expect import bug

EXPECT = [bug(stock={"files": [], "step": None}, patched={"files": ["last.ckpt"], "step": 4})]

from pathlib import Path

import _scenario as scenario

if __name__ == "__main__":
    directory = Path("run")
    callback = scenario.pl.callbacks.ModelCheckpoint(directory, save_last=True)
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=2,
        limit_val_batches=1,
        num_sanity_val_steps=0,
        check_val_every_n_epoch=5,
        callbacks=callback,
    )
    trainer.fit(scenario.BoringModel())
    files = sorted(path.name for path in directory.glob("*")) if directory.exists() else []
    step = scenario.torch.load(directory / "last.ckpt", weights_only=False)["global_step"] if files else None
    scenario.observe(files=files, step=step)
