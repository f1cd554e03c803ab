#!/usr/bin/env bash
# Guess: trainer.predict() of a model that is not compiled does not touch PyTorch's compiler. The first call takes as
#   long as the second.
# Behavior: with Lightning 2.1.4 and 2.2.5 the first call imports torch._dynamo, to find out if the model is compiled.
#   That took 4 s when this was written, and the second call 0.01 s. In 2.6.6 the import of Lightning does it.
# Why our users meet it: in a service that predicts, the first request is slow, and a warm-up by calling the model alone
#   (without the Trainer) does not help. An `import torch._dynamo` at the start does.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 packaging==26.0 PyYAML==6.0.3 tqdm==4.67.1 setuptools==80.10.2
"${pip[@]}" fsspec==2025.10.0 requests==2.32.5
"${pip[@]}" --no-deps lightning-utilities==0.15.3 torchmetrics==1.9.0
cat > program.py <<'PYTHON'
import sys
import time

import lightning
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel
from torch.utils.data import DataLoader

model, data = BoringModel(), DataLoader(torch.randn(4, 32))
model(torch.randn(4, 32))
trainer = Trainer(accelerator="cpu", barebones=True)
before = "torch._dynamo" in sys.modules
seconds = []
for _ in range(2):
    start = time.perf_counter()
    trainer.predict(model, data)
    seconds.append(time.perf_counter() - start)
print(
    f"torch {torch.__version__}, lightning {lightning.__version__}: torch._dynamo is imported {before} before predict, "
    f"{'torch._dynamo' in sys.modules} after it; the calls took {seconds[0]:.2f} and {seconds[1]:.2f} s"
)
PYTHON
for release in 2.1.4 2.2.5 2.6.6; do
  "${pip[@]}" --no-deps "lightning==$release"
  OMP_NUM_THREADS=1 env/bin/python -W ignore program.py > output.txt 2>&1 || { cat output.txt; exit 1; }
  grep "^torch" output.txt | tee -a seen.txt
done
for release in 2.1.4 2.2.5; do grep -q "lightning $release: .*imported False before predict, True after" seen.txt; done
grep -q "lightning 2.6.6: .*imported True before predict, True after" seen.txt
