"""Tools for several ranks: report hangs, load checkpoints in turns, and compare gradients and parameters."""
