"""PR 17438: FSDP on two nodes."""

import os

import _scenario as scenario

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1", NODE_RANK="1")

if __name__ == "__main__":
    strategy = scenario.trainer(accelerator="gpu", devices=1, num_nodes=2, strategy="fsdp").strategy
    scenario.observe(nodes=strategy.num_nodes, ranks=strategy.world_size, share=strategy.distributed_sampler_kwargs)
