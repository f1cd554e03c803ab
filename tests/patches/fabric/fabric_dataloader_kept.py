"""fabric.setup_dataloaders creates another loader of the same class without need. Cases: ``lost``, the class has an
argument that the copy does not get; ``refused``, one that it has to get; ``plain``, torch's DataLoader; ``ranks``, the
class of ``lost`` with two ranks, of which each gets its share."""

from _expect import bug, same, whole_run

EXPECT = [
    bug(
        "lost",
        stock={"batches": [[0, 1], [2, 3]], "sampler": "SequentialSampler"},
        patched={"batches": [[0, 3], [6, 9]], "sampler": "SequentialSampler"},
    ),
    bug("refused", stock="Trying to inject custom `Sampler` into the `Sized` instance"),
    same("plain", "other loaders are unchanged", alone=True, on="2.0.9"),
    same(
        "ranks",
        "loaders of two ranks are unchanged",
        whole_run(lambda result: len(result.observations) == 2),
        alone=True,
        on="2.0.9",
    ),
]

import _scenario as scenario
from torch.utils.data import DataLoader

fabric = scenario.fabric()


class Scaled(DataLoader):
    def __init__(self, *args, scale=1, **kwargs):
        super().__init__(*args, **kwargs)
        self._scale = scale

    def __iter__(self):
        return (batch * self._scale for batch in super().__iter__())


class Sized(DataLoader):
    def __init__(self, data, size):
        super().__init__(data, batch_size=size)


LOADERS = {
    "lost": lambda: Scaled(range(4), batch_size=2, scale=3),
    "refused": lambda: Sized(range(4), 2),
    "plain": lambda: DataLoader(range(4), batch_size=2),
}


def main(runner):
    loader = LOADERS["lost" if scenario.CASE == "ranks" else scenario.CASE]()
    with scenario.observing_errors():
        kept = runner.setup_dataloaders(loader)
    scenario.observe(batches=[batch.tolist() for batch in kept], sampler=type(kept.sampler).__name__)


if __name__ == "__main__":
    if scenario.CASE == "ranks":
        fabric.Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn").launch(main)
    else:
        runner = fabric.Fabric(accelerator="cpu", devices=1)
        runner.launch()  # in a launched function, Fabric records the arguments of loaders
        main(runner)
