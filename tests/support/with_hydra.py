"""Puts Hydra on the path of the program that imports this, before Lightning looks for it.

No test environment has it, since Lightning saves and loads hyperparameters in another way with OmegaConf.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import _releases

PINNED = ("hydra-core==1.3.2", "omegaconf==2.3.0", "antlr4-python3-runtime==4.9.3")
sys.path[0] = str(_releases.beside(PINNED[0], *PINNED))
