"""@torch.compile(...) fails once Fabric was imported."""

from _expect import bug, same

EXPECT = [
    bug(
        stock="compile() missing 1 required positional argument: 'model'",
        patched={"more": [2.0]},
        needs=("torch:compile",),
    ),
    same("module", "arguments of a compiled module are kept", {"kwargs": {"backend": "eager", "dynamic": False}}),
]

import _scenario as scenario
import torch

scenario.fabric("wrappers")

if __name__ == "__main__":
    if scenario.CASE == "module":
        compiled = torch.compile(torch.nn.Linear(1, 1), backend="eager", dynamic=False)
        scenario.observe(kwargs=compiled._compile_kwargs)
    else:
        with scenario.observing_errors():

            @torch.compile(backend="eager", dynamic=False)
            def more(x):
                return x + 1

        scenario.observe(more=more(torch.ones(1)))
