"""Puts packages that only Lightning 1.5 to 1.8 needs on the path of the program that imports this."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

del sys.path[0]

if find_spec("deprecate") is None:  # environments of that time have them
    sys.path.insert(0, str(_releases.beside_1x()))
