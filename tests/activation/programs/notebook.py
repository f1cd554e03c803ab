"""A simulated notebook: an interactive Python that has already imported and used Lightning."""

import sys

sys.ps1 = "In [1]: "  # makes Lightning detect an interactive session

import os

import lightning.pytorch as pl
from lightning.pytorch.loops.fetchers import _DataFetcher

if os.environ.get("PROBE_WAY") == "import":
    assert not hasattr(_DataFetcher.reset, "__lightning_patches__")
    import lightning_patches  # noqa: F401

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import train

assert pl.Trainer is train.pl.Trainer
train.fit("ddp_notebook")
