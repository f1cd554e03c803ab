"""FSDP on two nodes. Case ``own``: a custom strategy that counts its nodes."""

from _expect import bug, same

EXPECT = [
    bug(
        stock={"nodes": 1, "ranks": 1, "share": {"num_replicas": 1, "rank": 1}},
        patched={"nodes": 2, "ranks": 2, "share": {"num_replicas": 2, "rank": 1}},
        simulated_cuda=True,
        one_card=True,
    ),
    same("own", "custom strategy keeps its number", {"nodes": 4}, on="2.0.1"),
]

import os

import _scenario as scenario

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1", NODE_RANK="1")


class Own(scenario.pl.strategies.SingleDeviceStrategy):
    def __init__(self):
        super().__init__(device="cpu")
        self.num_nodes = 4


if __name__ == "__main__" and scenario.CASE == "own":
    scenario.observe(nodes=scenario.trainer(strategy=Own()).strategy.num_nodes)
elif __name__ == "__main__":
    strategy = scenario.trainer(accelerator="gpu", devices=1, num_nodes=2, strategy="fsdp").strategy
    scenario.observe(nodes=strategy.num_nodes, ranks=strategy.world_size, share=strategy.distributed_sampler_kwargs)
