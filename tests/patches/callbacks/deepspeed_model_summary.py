"""The summary of a model under DeepSpeed's stage 3 reads FLOP counts that do not exist."""

from _expect import bug, same

EXPECT = [
    # Not compared: The column of FLOPs, a feature of 2.6.0, is left out of the comparison.
    bug(
        ["", "input", "leftover"],
        stock="'DeepSpeedSummary' object has no attribute 'flop_counts'",
        patched=lambda seen: seen["table"]["Params per Device"][0] == "33",
        compare="table",
    ),
    same("own", "custom count of a program is kept", {"counts": ["7"], "left": None}),
]

from functools import partial

import _scenario as scenario

CASE = scenario.CASE
summaries = scenario.pytorch("utilities.model_summary")


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        if CASE == "input":
            self.example_input_array = scenario.torch.ones(1, 32)
        if CASE == "leftover":
            self.alone = scenario.torch.nn.Parameter(scenario.torch.ones(8))


class Fixed(summaries.DeepSpeedSummary):
    flop_counts = {"layer": {"mm": 7}}


def as_of_deepspeed(model):
    """Set the attributes of DeepSpeed's stage 3 on each parameter, as on the first of two ranks."""
    for parameter in model.parameters():
        parameter.ds_numel = parameter.numel()
        parameter.partition_numel = partial(int, parameter.numel() // 2)
    return model


if __name__ == "__main__":
    summary = (Fixed if CASE == "own" else summaries.DeepSpeedSummary)(as_of_deepspeed(Model()))
    with scenario.observing_errors():
        lines = [[cell.strip() for cell in line.split("|")] for line in str(summary).splitlines() if "|" in line]
    header, *rows = lines
    table = {name: [row[number] for row in rows] for number, name in enumerate(header)}
    counts = table.pop("FLOPs", None)
    scenario.observe(table=table, counts=counts)
    if CASE == "own":
        scenario.observe(left=vars(summary).get("flop_counts"))
