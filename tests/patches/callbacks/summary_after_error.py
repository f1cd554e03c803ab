"""A model whose forward fails in the summary. Cases: ``works``, ``jagged`` (forward works,
but not with torch's FLOP counter)."""

from _expect import bug, patched, same

LEFT = {"modes": [False, False], "hooks": 1}
RIGHT = {"modes": [True, True], "hooks": 0}

EXPECT = [
    bug(stock=LEFT, patched=RIGHT, like="works", compare=["modes", "hooks"]),
    same("works", "summary without an error is unchanged", {**RIGHT, "error": "", "calls": 1}),
    patched(
        "jagged",
        "jagged tensor is accepted",
        {**RIGHT, "error": ""},
        on="2.6.6",
        needs=("torch:nested.nested_tensor_from_jagged",),
    ),
]

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    calls = 0

    def __init__(self):
        super().__init__()
        self.example_input_array = torch.randn(2, 32)
        if scenario.CASE == "jagged":
            rows = [torch.randn(2, 32), torch.randn(3, 32)]
            self.example_input_array = torch.nested.nested_tensor(rows, layout=torch.jagged)

    def forward(self, x):
        self.calls += 1
        if not scenario.CASE:
            raise ValueError("not in forward")
        return self.layer(x)


if __name__ == "__main__":
    model = Model()
    try:
        scenario.pytorch("utilities.model_summary").ModelSummary(model)
        error = ""
    except Exception as caught:
        error = type(caught).__name__
    modes = [model.training, model.layer.training]
    scenario.observe(modes=modes, hooks=len(model.layer._forward_hooks), error=error, calls=model.calls)
