"""The training of ``stateful_loader_restored``, whose script restores the DataLoader's state itself. Cases:
``estimated``, ``not-estimated``."""

import _scenario as scenario
from stateful_loader_restored import OUT, Loader, Model, fit

if __name__ == "__main__":
    fit(2)
    model, loader = Model(), Loader()
    loader.load_state_dict({"next": 4})
    trainer = scenario.trainer(max_epochs=9, max_steps=6)
    trainer.fit(model, loader, ckpt_path=OUT / "checkpoints" / "step=2.ckpt")
    scenario.observe(seen=model.seen, restored=loader.restored)
