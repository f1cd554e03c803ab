#!/usr/bin/env bash
# Guess: the output of a pinned Lightning depends on the Trainer's arguments.
# Behavior: Lightning 2.6.6 uses rich's progress bar and model summary as soon as rich can be imported. The summary then
#   goes to stdout instead of the log on stderr, and the bar has other attributes (`desc` of a tqdm bar, for one).
# Why our users meet it: rich comes with tools that have nothing to do with training (pip-audit, typer, and earlier
#   lightning-patches itself). After such an install, programs that read the bar or parse stdout break, and uninstalling
#   the tool does not bring the old output back.
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
import sys

import lightning
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel

trainer = Trainer(accelerator="cpu", max_steps=2, logger=False, enable_checkpointing=False)
trainer.fit(BoringModel())
names = sorted(type(callback).__name__ for callback in trainer.callbacks)
print(f"lightning {lightning.__version__}: {', '.join(names)}", file=sys.stderr)
PYTHON
run() {
  env/bin/python -W ignore program.py > stdout 2> stderr
  tail -n 1 stderr
  echo "  the model summary is on stdout: $(grep -q 'Total params' stdout && echo yes || echo no)"
}
without=$(run)
"${pip[@]}" rich==14.2.0
with=$(run)
printf 'without rich: %s\nwith rich:    %s\n' "$without" "$with"
[[ $without == *"ModelSummary, TQDMProgressBar"*no ]]
[[ $with == *"RichModelSummary, RichProgressBar"*yes ]]
