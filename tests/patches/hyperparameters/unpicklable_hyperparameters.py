"""A hyperparameter that pickle refuses with a TypeError ends the run instead of being left out."""

from _expect import bug

EXPECT = [bug(stock="TypeError: cannot pickle '_thread.lock' object", patched={"names": ["width"], "width": 3})]

import threading

import _scenario as scenario


class Client:
    """An object that can be copied, but not pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return Client()


class Model(scenario.BoringModel):
    def __init__(self, client, width):
        super().__init__()
        self.save_hyperparameters()


if __name__ == "__main__":
    model = Model(Client(), 3)
    with scenario.observing_errors():
        scenario.trainer(max_steps=1, limit_val_batches=0).fit(model)
    scenario.observe(names=sorted(model.hparams), width=model.hparams.width)
