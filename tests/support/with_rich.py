"""Puts rich on the path of the program that imports this, before Lightning looks for it.

No test environment has it, since Lightning uses it for progress bars and tables if it can be imported.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

PINNED = ("rich==14.2.0", "markdown-it-py==3.0.0", "mdurl==0.1.2", "pygments==2.19.2")  # for Python 3.8, too
del sys.path[0]
sys.path.insert(1, str(_releases.beside(PINNED[0], *PINNED)))  # after the program's directory
