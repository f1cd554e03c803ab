"""The current (simulated) GPU of each rank when it joins the process group. Cases: ``trainer``, ``fabric``."""

from _expect import bug, whole_run


def _devices(*current):
    """Return a check of the ranks' current devices; 0 and 1 are right."""
    return whole_run(
        lambda result: [(rank["current"], rank["own"]) for rank in result.observations] == [*zip(current, (0, 1))]
    )


EXPECT = [bug(["trainer", "fabric"], stock=_devices(0, 0), patched=_devices(0, 1), simulated_cuda=True)]

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

LightningEnvironment = scenario.fabric("plugins.environments").LightningEnvironment


class Observing(LightningEnvironment):
    """An environment that records the device: Lightning reads its address right before it creates the group."""

    at_last_look = None

    @property
    def main_port(self):
        if not torch.distributed.is_initialized():
            Observing.at_last_look = torch.cuda.current_device()
        return super().main_port


def with_trainer():
    class Model(Linear):
        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

    trainer = scenario.trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=1, plugins=[Observing()])
    trainer.fit(Model(), DataLoader(TensorDataset(torch.ones(8, 2))))
    return trainer.strategy.root_device


def with_fabric():
    fabric = scenario.fabric().Fabric(accelerator="cuda", devices=2, strategy="ddp", plugins=[Observing()])
    fabric.launch()
    fabric.barrier()
    return fabric.device


if __name__ == "__main__":
    own = with_fabric() if scenario.CASE == "fabric" else with_trainer()
    scenario.observe(own=own.index, current=Observing.at_last_look)
    if torch.distributed.is_initialized():  # Lightning does not destroy it, and gloo may abort at the interpreter's end
        torch.distributed.destroy_process_group()
