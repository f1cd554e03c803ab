"""A module with a part of the model. The training script has imported it, other scripts have not."""

import sys

Part = sys.modules["__main__"].Part


class Narrow(Part):
    def __init__(self, width: int = 2):
        super().__init__(width)
