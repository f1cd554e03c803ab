#!/usr/bin/env bash
# Guess: a function that wrapt has wrapped behaves the same inside a compiled module. What torch.compile can't trace, it
#   leaves to Python (a graph break), and fullgraph=True would report it.
# Behavior: torch.compile traces through the wrapper to the original. The wrapper does not run, nothing warns, and
#   fullgraph=True accepts it. The wrapper works where the compiled function is itself the wrapped one.
# Why our users meet it: tracing, profiling and patching tools wrap functions with wrapt. So does code that "fixes" a
#   function of Lightning or torch; the fix is gone in compiled steps, and only the numbers show it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 numpy==2.2.6 wrapt==2.5.2
cat > program.py <<'PYTHON'
import torch
import wrapt


@wrapt.decorator
def doubled(wrapped, instance, arguments, options):
    return 2 * wrapped(*arguments, **options)


@doubled
def function(x):
    return x + 1


class Module(torch.nn.Module):
    @doubled
    def method(self, x):
        return x + 1

    def forward(self, x):
        return torch.stack([function(x), self.method(x)])


module, x = Module(), torch.ones(())
compiled = torch.compile(module, backend="eager", fullgraph=True)
print(f"torch {torch.__version__}, wrapt {wrapt.__version__}")
print("in Python:       ", module(x).tolist())
print("compiled:        ", compiled(x).tolist())
print("compiled directly:", torch.compile(function, backend="eager")(x).item())
assert module(x).tolist() == [4.0, 4.0]
assert compiled(x).tolist() == [2.0, 2.0], "the wrapper runs in compiled code now"
assert torch.compile(function, backend="eager")(x).item() == 4.0
PYTHON
env/bin/python program.py
