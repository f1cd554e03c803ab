#!/usr/bin/env bash
# Guess: jsonargparse, and so LightningCLI, offers the parameters of a base class if `**kwargs` reaches its __init__.
#   How it gets there is up to the code.
# Behavior: jsonargparse reads the source text. `super().__init__(**kwargs)` works; through a copy of kwargs all inherited
#   options are gone; with `Base.__init__(self, **kwargs)` the first one is, which it takes for `self`. A config that
#   names them is refused. All three classes do the same when Python calls them.
# Why our users meet it: models and data modules pass `**kwargs` on, and a refactoring that changes no behavior changes
#   which options the command line and old config.yaml files may have.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH
python3 -m venv env
pip=(env/bin/python -m pip install -qq --disable-pip-version-check)
"${pip[@]}" "jsonargparse[signatures]==4.53.0" PyYAML==6.0.3 docstring-parser==0.17.0 typeshed-client==2.8.2
cat > program.py <<'PYTHON'
import jsonargparse


class Base:
    def __init__(self, lr: float = 0.1, depth: int = 3):
        self.lr, self.depth = lr, depth


class BySuper(Base):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)


class ByCopy(Base):
    def __init__(self, **kwargs):
        options = dict(kwargs)
        super().__init__(**options)


class ByName(Base):
    def __init__(self, **kwargs):
        Base.__init__(self, **kwargs)


print("jsonargparse", jsonargparse.__version__)
offered, accepted = {}, {}
for kind in (BySuper, ByCopy, ByName):
    assert vars(kind(lr=0.5)) == {"lr": 0.5, "depth": 3}
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(kind, "model")
    offered[kind.__name__] = [name for name in ("lr", "depth") if f"--model.{name}" in parser.format_help()]
    try:
        parser.parse_object({"model": {"lr": 0.5}})
        accepted[kind.__name__] = "accepted"
    except jsonargparse.ArgumentError as error:
        accepted[kind.__name__] = f"refused: {error}"
    print(f"{kind.__name__:8} options {offered[kind.__name__]}, config with lr {accepted[kind.__name__]}")
assert offered == {"BySuper": ["lr", "depth"], "ByCopy": [], "ByName": ["depth"]}, "this has changed"
assert [text[:8] for text in accepted.values()] == ["accepted", "refused:", "refused:"], "this has changed"
PYTHON
env/bin/python program.py
