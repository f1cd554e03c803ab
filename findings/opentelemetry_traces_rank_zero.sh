#!/usr/bin/env bash
# Guess: opentelemetry-instrument in front of a training command instruments all ranks of the job, as the ranks inherit
#   its environment.
# Behavior: it instruments rank 0 only. Its sitecustomize removes its own folder from PYTHONPATH in the process that it
#   instruments, so the ranks that the Trainer starts from there run without it. Nothing warns. Below torchrun no rank
#   is instrumented, as torchrun itself is the process that is.
# Why our users meet it: traces and metrics of a job with several ranks look complete, and are those of one rank. A tool
#   that activates itself through PYTHONPATH can't conclude from rank 0 how the other ranks start.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 packaging==26.0 PyYAML==6.0.3 tqdm==4.67.1 setuptools==80.10.2
"${pip[@]}" --no-deps lightning==2.6.6 lightning-utilities==0.15.3 torchmetrics==1.9.0
"${pip[@]}" opentelemetry-distro==0.51b0
cat > program.py <<'PYTHON'
import sys

from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel

trainer = Trainer(
    accelerator="cpu", strategy="ddp", devices=2, max_steps=1, logger=False, barebones=True
)
trainer.fit(BoringModel())
instrumented = "opentelemetry.instrumentation.distro" in sys.modules
print(f"rank {trainer.global_rank} of {trainer.world_size}: instrumented {instrumented}", flush=True)
PYTHON
export OMP_NUM_THREADS=1 OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none
run() {
  env/bin/opentelemetry-instrument "$@" 2>&1 | grep -o "rank [01] of 2: instrumented .*" | sort
}
echo "opentelemetry-distro 0.51b0, lightning 2.6.6, torch 2.13.0"
run env/bin/python program.py | tee python.txt
run env/bin/torchrun --standalone --nproc-per-node 2 program.py | tee torchrun.txt
printf 'rank %s of 2: instrumented %s\n' 0 True 1 False | diff - python.txt
printf 'rank %s of 2: instrumented %s\n' 0 False 1 False | diff - torchrun.txt
