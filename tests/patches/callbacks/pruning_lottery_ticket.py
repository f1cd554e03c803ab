"""With the lottery ticket hypothesis, the remaining weights are not reset."""

from _expect import bug

EXPECT = [bug(stock={"pruned": 32, "put_back": False}, patched={"pruned": 32, "put_back": True})]

import _scenario as scenario
import torch

if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    model = scenario.BoringModel()
    first = model.layer.weight.detach().clone()
    pruning = scenario.pl.callbacks.ModelPruning(
        "l1_unstructured", parameters_to_prune=[(model.layer, "weight")], amount=0.5, make_pruning_permanent=False
    )
    trainer = scenario.trainer(max_epochs=1, limit_train_batches=2, limit_val_batches=0)
    trainer.callbacks.append(pruning)
    trainer.fit(model)
    scenario.observe(
        pruned=int((model.layer.weight_mask == 0).sum()), put_back=torch.equal(model.layer.weight_orig, first)
    )
