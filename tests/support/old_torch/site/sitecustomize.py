"""Make Debian 12's torch 1.13.1 work with Lightning 2.0 and 2.1. Must be first on the path of its Python.

The package reports the version 1.13.0a0, so Lightning uses names that only torch 1.12 had. And its
``torch.distributed`` has a dataclass with a default that Debian 12's Python 3.11 refuses.
"""

import dataclasses

_dataclass = dataclasses.dataclass


def _hashable(cls=None, **options):
    if cls is None:
        return lambda cls: _hashable(cls, **options)
    made = _dataclass(cls, **options)
    if made.__name__ == "TensorProperties" and made.__hash__ is None:
        made.__hash__ = object.__hash__
    return made


dataclasses.dataclass = _hashable
try:
    import torch
    import torch.distributed._shard.sharded_tensor
except ImportError:
    pass  # a program that needs torch will fail later
else:
    if torch.__version__ == "1.13.0a0":
        torch.__version__ = torch.torch_version.TorchVersion("1.13.1")
finally:
    dataclasses.dataclass = _dataclass
