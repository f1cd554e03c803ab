"""A fit of a module after something that is over, and the state of the process; see `tests/differential/test_trace.py`.

Cases: ``new`` (nothing came before), ``training``, ``validation``, ``predict`` and ``loader`` (an error there),
``interrupt`` (Ctrl+C in the set-up), ``search`` and ``lr`` (a search, whose result is then discarded), ``validated``
(validate ran before).
"""

import contextlib
import signal

import _scenario as scenario
import torch
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.lr, self.batch_size, self.fails = 0.1, 2, CASE
        self.body = torch.nn.Sequential(torch.nn.BatchNorm1d(32), torch.nn.Dropout())

    def fail(self, where, error=ValueError):
        if self.fails == where:
            raise error(where)

    def setup(self, stage):
        self.fail("interrupt", KeyboardInterrupt)

    def loader(self):
        self.fail("loader")
        return DataLoader(torch.ones(16, 32), batch_size=self.batch_size)

    train_dataloader = val_dataloader = predict_dataloader = loader

    def forward(self, x):
        return super().forward(self.body(x))

    def training_step(self, batch, batch_idx):
        self.fail("training")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        self.fail("validation")
        return super().validation_step(batch, batch_idx)

    def predict_step(self, batch, batch_idx):
        self.fail("predict")


def depth(function):
    return depth(function.__wrapped__) + 1 if hasattr(function, "__wrapped__") else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    scenario.pl.seed_everything(1)
    model = Model()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    options = {"max_epochs": 1, "num_sanity_val_steps": 0}
    with contextlib.suppress(ValueError, KeyboardInterrupt, SystemExit):
        if CASE == "search":
            scenario.tuner(scenario.trainer(**options)).scale_batch_size(model, method="validate", max_trials=2)
        elif CASE == "lr":
            scenario.tuner(scenario.trainer(**options)).lr_find(model, num_training=5, update_attr=False)
        elif CASE == "predict":
            scenario.trainer(**options).predict(model)
        elif CASE == "validated":
            scenario.trainer(**options).validate(model, verbose=False)
        elif CASE != "new":
            scenario.trainer(**options).fit(model)
    seen = {
        "modes": [module.training for module in model.modules()],
        "requires_grad": [each.requires_grad for each in model.parameters()],
        "hooks": sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()),
        "patched": depth(DataLoader.__init__) + depth(torch.utils.data.BatchSampler.__init__),
        "interruptible": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "grad": [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()],
    }
    model.fails, model.batch_size = "", 2
    model.load_state_dict(state)
    torch.manual_seed(2)
    trainer = scenario.trainer(**options)
    trainer.fit(model)
    scenario.observe(**seen, steps=trainer.global_step, weights=[each.sum() for each in model.parameters()])
