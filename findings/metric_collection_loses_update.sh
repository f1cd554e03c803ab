#!/usr/bin/env bash
# Guess: a metric taken out of a torchmetrics MetricCollection and updated alone keeps that update.
# Behavior: the next update of the whole collection discards it, silently, if another metric with the same kind of state
#   (precision and recall, for example) comes first in the collection: such metrics share the state of the first. A
#   compute() between the two updates hides the loss, as the value is still right there. With compute_groups=False the
#   update is kept.
# Why our users meet it: models hold one collection for training, and update a single metric for the batches that only
#   some heads or targets have. The logged value is then wrong, and differs from that of the metric used alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 packaging==25.0 lightning-utilities==0.15.2
"${pip[@]}" --no-deps torchmetrics==1.9.0
cat > program.py <<'PYTHON'
import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryPrecision, BinaryRecall

every_batch = torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([1, 0, 1, 0])
rare_batch = torch.zeros(4), torch.ones(4, dtype=torch.long)


def recall(compute_groups):
    """Recall of three updates, and its value after the second."""
    metrics = MetricCollection(
        {"precision": BinaryPrecision(), "recall": BinaryRecall()}, compute_groups=compute_groups
    )
    metrics.update(*every_batch)
    metrics["recall"].update(*rare_batch)
    between = round(float(metrics["recall"].compute()), 3)
    metrics.update(*every_batch)
    return round(float(metrics.compute()["recall"]), 3), between


alone = BinaryRecall()
for batch in (every_batch, rare_batch, every_batch):
    alone.update(*batch)
alone = round(float(alone.compute()), 3)
print(f"torch {torch.__version__}, torchmetrics {torchmetrics.__version__}")
print(f"recall of the three updates: {alone} alone")
for compute_groups in (True, False):
    last, between = recall(compute_groups)
    print(f"compute_groups={compute_groups}: {between} after two updates, {last} after three")
assert recall(False)[0] == alone == 0.25, "this has changed"
assert recall(True) == (0.5, 0.167), "this has changed"
PYTHON
env/bin/python program.py
