"""predict(return_predictions=False) raises if the step takes the iterator."""

from _expect import bug, patched

EXPECT = [
    bug(stock="cannot access local variable 'any_on_epoch'", patched={"returned": None, "seen": 3}, since="2.1.0"),
    patched("own", "error of the same type in the step is raised", "'undefined'"),
]

import _scenario as scenario


class Model(scenario.BoringModel):
    seen = 0

    def predict_step(self, dataloader_iter):
        next(dataloader_iter)
        self.seen += 1
        if scenario.CASE == "own":
            print(undefined)  # noqa: F821
            undefined = 1  # noqa: F841
        return self.seen


if __name__ == "__main__":
    model = Model()
    with scenario.observing_errors():
        returned = scenario.trainer(limit_predict_batches=3).predict(model, return_predictions=False)
    scenario.observe(returned=returned, seen=model.seen)
