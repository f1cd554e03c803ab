"""FSDP with a CUDAAccelerator object. Case: ``cpu``, an accelerator that is refused."""

import _scenario as scenario

accelerators = scenario.pytorch("accelerators")


if __name__ == "__main__":
    accelerator = accelerators.CPUAccelerator() if scenario.CASE == "cpu" else accelerators.CUDAAccelerator()
    with scenario.observing_errors():
        trainer = scenario.trainer(accelerator=accelerator, devices=1, strategy="fsdp")
    scenario.observe(device=str(trainer.strategy.root_device), same=trainer.accelerator is accelerator)
