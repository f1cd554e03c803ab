"""@torch.compile(...) fails once Fabric was imported."""

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
