#!/usr/bin/env bash
# Guess: with `torchrun --max-restarts` the ranks of a job over gloo start again after one has crashed.
# Behavior: some restarts fail (3 of 7 when this was written), with "Gloo connectFullMesh failed ... Connection refused"
#   or a timeout. torchrun keeps the store of the first attempt, and init_process_group uses the same keys in each
#   attempt, so a rank that is ready before the others finds the address of a dead one. Which side connects depends on
#   the ports, hence on luck. With TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 each restart works.
# Why our users meet it: gloo is the backend of jobs on CPUs, and of the group for CPU tensors beside NCCL. The error
#   reads like one of the network, and the job sometimes survives.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6
cat > program.py <<'PYTHON'
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
time.sleep(3 * rank)  # as if rank 1 had more to load
dist.init_process_group("gloo", timeout=timedelta(seconds=20))
total = torch.ones(1)
dist.all_reduce(total)
if rank == 0:
    print(f"torch {torch.__version__}, attempt {attempt}: the ranks have met, sum {total.item():.0f}", flush=True)
raise SystemExit(1)  # this job always crashes
PYTHON
restarts=10
run() {
  env OMP_NUM_THREADS=1 "$1" env/bin/torchrun --standalone --nproc-per-node 2 --max-restarts "$restarts" program.py 2>&1 || true
}
echo "the store that torchrun keeps:"
run TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0 | grep -o "torch .* the ranks have met.*\|RuntimeError: Gloo.*" | tee shared.txt
echo "a store for each attempt:"
run TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 | grep -o "torch .* the ranks have met.*\|RuntimeError: Gloo.*" | tee own.txt
[ "$(grep -c "the ranks have met, sum 2" own.txt)" = $((1 + restarts)) ]
[ "$(grep -c "the ranks have met, sum 2" shared.txt)" -lt $((1 + restarts)) ]
