"""Processes that torchrun has started for training on CPUs."""

from typing import Any

from lightning_patches.engine.distributions import upstream_module


def is_on_cpu_under_torchrun(connector: Any, package: str, namespace: str) -> bool:
    """True if torchrun has started this process, and the Trainer or Fabric of the connector runs on a CPU.

    Args:
        package: ``"pytorch"`` for a Trainer, ``"fabric"`` for a Fabric.
    """
    cpu = upstream_module(namespace, f"{package}.accelerators.cpu").CPUAccelerator
    elastic = upstream_module(namespace, "fabric.plugins.environments.torchelastic").TorchElasticEnvironment
    return bool(type(connector.accelerator) is cpu and elastic.detect())
