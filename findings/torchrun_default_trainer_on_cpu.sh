#!/usr/bin/env bash
# Guess: two processes that torchrun starts with a default Trainer train together, with DDP, as they do on two GPUs. If
#   that can't be done, the Trainer raises.
# Behavior: on a machine without a GPU each process trains alone, on all of the data, as rank 0 of 1. Nothing warns, and
#   both write logs and checkpoints as rank 0 does. With strategy="ddp" the same Trainer raises.
# Why our users meet it: a script for GPUs is tried with torchrun on a laptop or in CI. It passes there, and so does every
#   test of a rank's own data or of a collective, as there is one rank only.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 packaging==26.0 PyYAML==6.0.3 tqdm==4.67.1 setuptools==80.10.2
"${pip[@]}" --no-deps lightning==2.6.6 lightning-utilities==0.15.3 torchmetrics==1.9.0
cat > program.py <<'PYTHON'
import os
import sys

import lightning
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel

trainer = Trainer(
    accelerator="cpu", strategy=sys.argv[1], max_epochs=1, logger=False, barebones=True
)
trainer.fit(BoringModel())
print(
    f"torch {torch.__version__}, lightning {lightning.__version__}: process {os.environ['RANK']} "
    f"of {os.environ['WORLD_SIZE']} trained {trainer.global_step} steps as rank {trainer.global_rank} "
    f"of {trainer.world_size}",
    flush=True,
)
PYTHON
run() {
  OMP_NUM_THREADS=1 env/bin/torchrun --standalone --nproc-per-node 2 program.py "$1" 2>&1
}
run auto > auto.txt
grep -o "torch .* trained .*" auto.txt
if run ddp > ddp.txt; then cat ddp.txt; exit 1; fi
grep -o -m 1 "ValueError: .*" ddp.txt
for process in 0 1; do grep -q "process $process of 2 trained 64 steps as rank 0 of 1" auto.txt; done
