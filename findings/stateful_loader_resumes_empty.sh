#!/usr/bin/env bash
# Guess: the state of a StatefulDataLoader after an epoch's last batch continues with the next epoch, since no batch of
#   this one is left.
# Behavior: the first pass over the restored loader has no batch at all. The same state taken one statement later, below
#   the loop, continues with a full epoch.
# Why our users meet it: ModelCheckpoint(every_n_train_steps=n) saves inside the loop, and at an epoch's last batch
#   whenever n divides its length. Resumed from there, Lightning 2.6.6 has an epoch without a batch, and ends an epoch of
#   steps short.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 urllib3==2.5.0 requests==2.32.5
"${pip[@]}" --no-deps torchdata==0.11.0
cat > program.py <<'PYTHON'
import warnings

warnings.simplefilter("ignore")
import torch
import torchdata
from torchdata.stateful_dataloader import StatefulDataLoader


def loader(workers, state=None):
    made = StatefulDataLoader(range(6), batch_size=2, num_workers=workers)
    if state is not None:
        made.load_state_dict(state)
    return made


def batches(workers, state):
    """The number of batches in three passes over a loader that continues from a state."""
    restored = loader(workers, state)
    return [len(list(restored)) for _ in range(3)]


print(f"torch {torch.__version__}, torchdata {torchdata.__version__}; an epoch has 3 batches")
for workers in (0, 1):
    first = loader(workers)
    for number, _ in enumerate(first, start=1):
        if number == 3:
            inside = first.state_dict()
    below = first.state_dict()
    seen = {"at the last batch": batches(workers, inside), "below the loop": batches(workers, below)}
    for when, counts in seen.items():
        print(f"{workers} workers, state taken {when:17}: passes of {counts} batches")
    assert seen == {"at the last batch": [0, 3, 3], "below the loop": [3, 3, 3]}, "this has changed"
PYTHON
env/bin/python program.py
