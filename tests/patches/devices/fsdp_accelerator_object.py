"""FSDP with a CUDAAccelerator object. Case: ``cpu``, an accelerator that is refused."""

from _expect import bug, same, whole_run

MESSAGES = ("`fsdp` requires a GPU accelerator, but got: <", "to be `fsdp`, but GPU accelerator is not used.")
"""From 2.3.0 on, and below."""

EXPECT = [
    bug(
        stock=whole_run(lambda result: any(message in result.output for message in MESSAGES)),
        patched=lambda seen: seen == {"device": "cuda:0", "same": True},
        simulated_cuda=True,
        one_card=True,
    ),
    same("cpu", "CPU accelerator is refused as on stock", MESSAGES[0], compare=lambda ranks: None, simulated_cuda=True),
]

import _scenario as scenario

accelerators = scenario.pytorch("accelerators")


if __name__ == "__main__":
    accelerator = accelerators.CPUAccelerator() if scenario.CASE == "cpu" else accelerators.CUDAAccelerator()
    with scenario.observing_errors():
        trainer = scenario.trainer(accelerator=accelerator, devices=1, strategy="fsdp")
    scenario.observe(device=str(trainer.strategy.root_device), same=trainer.accelerator is accelerator)
