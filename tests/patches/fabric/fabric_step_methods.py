"""``training_step()`` of a LightningModule that Fabric has set up, on two CPU ranks with different data. Case
``precision`` (PR 17439): in bf16-mixed."""

from _expect import bug, whole_run


def ranks_agree(result):
    first, second = (rank["weights"] for rank in result.observations)
    return first == second


def computes_in(dtype):
    return {"computed_in": f"torch.{dtype}"}


EXPECT = [
    bug(stock=whole_run(lambda result: not ranks_agree(result)), patched=whole_run(ranks_agree)),
    bug("precision", stock=computes_in("float32"), patched=computes_in("bfloat16")),
]

import _scenario as scenario
import torch
from _model import Linear


class Model(Linear):
    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch, batch_idx):
        output = self(batch)
        scenario.observe(computed_in=output.dtype)
        return output.pow(2).mean()


if __name__ == "__main__":
    precision = scenario.precision("bf16-mixed" if scenario.CASE == "precision" else "32-true")
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=2, strategy="ddp", precision=precision)
    fabric.launch()
    torch.manual_seed(3)
    model = Model()
    wrapped, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    batch = torch.arange(6.0).reshape(3, 2) + fabric.global_rank
    for index in range(2):
        optimizer.zero_grad()
        fabric.backward(wrapped.training_step(batch, batch_idx=index))
        optimizer.step()
    scenario.observe(
        weights=list(model.parameters()),
        forward=wrapped(batch),
        own_forward="forward" in vars(model) and model.forward.__func__ is not Model.forward,
    )
