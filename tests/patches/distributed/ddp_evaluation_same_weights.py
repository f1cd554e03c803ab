"""Evaluation under DDP, with different models in two CPU ranks. Cases: ``validate``, ``predict``, ``fit`` (which always
starts with the weights of rank zero), ``ignored`` (validate; DDP ignores a parameter and a buffer), ``asked``
(validate; the model counts calls of its methods)."""

from _expect import bug, fixed, patched, same, whole_run


def in_step(ranks):
    """True if every rank used rank zero's weights, and had the same outputs."""
    first, second = ranks
    return first["used"] == second["used"] == first["own"] and first["outputs"] == second["outputs"]


def each_its_own(ranks):
    return all(rank["used"] == rank["own"] for rank in ranks) and ranks[0]["outputs"] != ranks[1]["outputs"]


def _both(check):
    return whole_run(lambda result: len(result.observations) == 2 and check(result.observations))


def ignores(result):
    """True if rank one has its own values of the parameters that DDP ignores, and rank zero's of all others."""
    first, second = result.observations
    own = {name: second["own" if name in ("scale", "shift") else "used"][name] for name in first["own"]}
    return first["used"] == first["own"] and second["used"] == {
        **first["own"],
        "scale": own["scale"],
        "shift": own["shift"],
    }


EXPECT = [
    bug(["validate", "predict"], stock=_both(each_its_own), patched=_both(in_step)),
    fixed(
        "ignored",
        "parameters that DDP ignores are unchanged",
        stock=_both(each_its_own),
        patched=whole_run(ignores),
        on="2.0.0",
    ),
    fixed(
        "ignored", "parameters that DDP ignores are those of the fixed release", stock=_both(each_its_own), on="2.0.0"
    ),
    patched("asked", "asked model has the same weights in all ranks", _both(in_step), on="2.0.0"),
    same("asked", "model has no more parameter calls than on stock", compare="asked", on="2.0.0"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.scale = torch.nn.Parameter(torch.rand(1), requires_grad=False)
        self.register_buffer("shift", torch.rand(1))
        self.register_buffer("calls", torch.tensor(int(torch.rand(()) * 1000)))
        self.outputs = []
        self.asked = 0
        if scenario.CASE == "ignored":
            self._ddp_params_and_buffers_to_ignore = ["scale", "shift"]

    def named_parameters(self, *args, **kwargs):
        self.asked += 1
        return super().named_parameters(*args, **kwargs)

    def named_buffers(self, *args, **kwargs):
        self.asked += 1
        return super().named_buffers(*args, **kwargs)

    def forward(self, x):
        return self.layer(x) * self.scale + self.shift

    def training_step(self, batch, batch_idx):
        self.outputs.append(self(batch[0]))
        return self.outputs[-1].mean()

    def validation_step(self, batch, batch_idx):
        self.outputs.append(self(batch[0]))
        self.log("val_loss", self.outputs[-1].pow(2).mean())

    def predict_step(self, batch, batch_idx):
        self.outputs.append(self(batch[0]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.layer.parameters(), lr=0.0)


if __name__ == "__main__":
    torch.manual_seed(11 + scenario.rank())  # different in each rank, but the same in every variant
    model = Model()
    own = {name: state.clone() for name, state in model.state_dict().items()}
    loader = DataLoader(TensorDataset(torch.ones(4, 2)), batch_size=2)
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=1)
    if scenario.CASE == "fit":
        trainer.fit(model, loader)
    elif scenario.CASE == "predict":
        trainer.predict(model, loader, return_predictions=False)
    else:
        trainer.validate(model, loader, verbose=False)
    if scenario.CASE == "asked":
        scenario.observe(asked=model.asked)
    scenario.observe(
        own=own, used=dict(model.state_dict()), outputs=model.outputs, metrics=dict(trainer.callback_metrics)
    )
