#!/usr/bin/env bash
# Guess: with `torchrun --max-restarts` the ranks of a job over gloo start again after one has crashed.
# Behavior: the restarted ranks find the addresses of the dead ones. torchrun keeps the store of the first attempt, and
#   init_process_group gives the second attempt the same keys. A rank that is ready before the others connects to a
#   closed port and fails. TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 makes restarts work.
# Why our users meet it: gloo is the backend of jobs on CPUs, and of the group for CPU tensors beside NCCL. The error
#   ("Gloo connectFullMesh failed ... Connection refused") reads like one of the network.
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

import torch
import torch.distributed as dist

attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
time.sleep(3 * rank)  # ranks never start at the same moment
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"torch {torch.__version__}, attempt {attempt}, rank {rank}: sum {total.item():.0f}", flush=True)
if attempt == 0:
    if rank == 1:
        raise SystemExit("crash")
    time.sleep(60)  # torchrun ends this process
dist.destroy_process_group()
PYTHON
run() {
  OMP_NUM_THREADS=1 timeout 300 env/bin/torchrun --standalone --nproc-per-node 2 --max-restarts 1 program.py 2>&1
}
if run > shared.txt; then cat shared.txt; exit 1; fi
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 run > own.txt
echo "store kept by torchrun:"
grep -o "torch .* sum .*\|RuntimeError: Gloo connectFullMesh failed.*Connection refused" shared.txt | sort -u
echo "a store for each attempt:"
grep -o "torch .* sum .*" own.txt
grep -q "RuntimeError: Gloo connectFullMesh failed.*Connection refused" shared.txt
if grep -q "attempt 1, rank .: sum" shared.txt; then exit 1; fi
[ "$(grep -c "attempt 1, rank .: sum 2" own.txt)" = 2 ]
