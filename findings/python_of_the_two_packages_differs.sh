#!/usr/bin/env bash
# Guess: lightning and pytorch-lightning of one version contain the same code, so they can be installed on the same
#   versions of Python.
# Behavior: on Python 3.8, pip installs pytorch-lightning==2.4.0, and finds no lightning==2.4.0: that one requires
#   Python 3.9. Without a pin, pip takes pytorch-lightning 2.4.0 and lightning 2.3.3: the two names give different code.
# Why our users meet it: they move a project between the two names, or use libraries that need either. pip's error says
#   that no distribution matches, as if the release did not exist.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" pip==25.3
get() { # Python, directory, requirement
  env/bin/python -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
    --python-version "$1" -d "$2" "$3" 2>&1
}
env/bin/python -m pip --version
get 3.8 pinned pytorch-lightning==2.4.0
if get 3.8 pinned lightning==2.4.0 > refused.txt; then echo "pip has found lightning 2.4.0"; exit 1; fi
grep "No matching distribution found for lightning==2.4.0" refused.txt
get 3.9 newer lightning==2.4.0
get 3.8 latest pytorch-lightning
get 3.8 latest lightning
echo "on Python 3.8 with pins, and without:"
ls pinned latest
[ "$(ls pinned)" = "pytorch_lightning-2.4.0-py3-none-any.whl" ]
[ -e newer/lightning-2.4.0-py3-none-any.whl ]
[ "$(ls latest | sort | xargs)" = "lightning-2.3.3-py3-none-any.whl pytorch_lightning-2.4.0-py3-none-any.whl" ]
