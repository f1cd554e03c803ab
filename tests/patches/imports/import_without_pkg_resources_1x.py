"""Pull request 20081: Lightning needs ``pkg_resources`` to be imported, which newer setuptools do not have."""

import sys

import _without_setuptools
from _scenario import CASE

if CASE != "there":
    _without_setuptools.go_there()

import _model_1x as user
import _scenario as scenario

if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=1)
    trainer.fit(user.Model())
    scenario.observe(steps=trainer.global_step)
    scenario.observe(others_have=sorted(name for name in sys.modules if name == "pkg_resources"))
