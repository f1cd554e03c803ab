"""A second fit of a pruned model, with the lottery ticket hypothesis. Case: ``none`` without that."""

from _expect import bug

EXPECT = [
    bug(
        stock="support the deepcopy protocol",
        patched={"zeros": [32, 48]},
        like="none",
        compare=["steps"],
    )
]

import _scenario as scenario

if __name__ == "__main__":
    model = scenario.BoringModel()
    pruning = scenario.pytorch("callbacks").ModelPruning(
        "l1_unstructured",
        parameters_to_prune=[(model.layer, "weight")],
        amount=0.5,
        make_pruning_permanent=False,
        use_lottery_ticket_hypothesis=scenario.CASE != "none",
    )
    zeros, steps = [], []
    for _ in range(2):
        trainer = scenario.trainer(max_epochs=1, limit_train_batches=2, limit_val_batches=0, callbacks=[pruning])
        trainer.fit(model)
        zeros.append(int((model.layer.weight_mask == 0).sum()))
        steps.append(trainer.global_step)
    scenario.observe(zeros=zeros, steps=steps)
