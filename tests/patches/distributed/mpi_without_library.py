"""mpi4py is installed without the MPI library that it needs. Cases: ``trainer``, ``fabric``, and the result of
``MPIEnvironment.detect`` if MPI has started ``1`` or ``2`` processes, or if mpi4py fails in ``another way``."""

from _expect import bug, same

MISSING = "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory"

EXPECT = [
    bug(["trainer", "fabric"], stock={"error": MISSING, "result": None}, patched={"error": None, "result": 2}),
    *[
        same(case, "working MPI is used as on stock", {"error": error, "result": result})
        for case, error, result in (
            ("1", None, False),
            ("2", None, True),
            ("another way", "RuntimeError: MPI_Init failed", None),
        )
    ],
]

import os
import sys

import _scenario as scenario
import torch

MISSING = "raise ImportError('libmpi.so.40: cannot open shared object file: No such file or directory')"


def install(content):
    """Write an mpi4py with metadata, as pip installs it."""
    site = os.path.join(os.environ.get("SCENARIO_OUT", "."), "site")
    files = {
        "mpi4py-4.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mpi4py\nVersion: 4.0.0\n",
        "mpi4py/__init__.py": "",
        "mpi4py/MPI.py": content,
    }
    for name, text in files.items():
        path = os.path.join(site, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    sys.path.insert(0, site)


def with_trainer():
    trainer = scenario.trainer(devices=1, max_steps=2, limit_val_batches=0)
    trainer.fit(scenario.BoringModel())
    return trainer.global_step


def with_fabric():
    fabric = scenario.fabric().Fabric(accelerator="cpu", devices=1)
    return len(fabric.setup_dataloaders(torch.utils.data.DataLoader(range(2))))


if __name__ == "__main__":
    result = error = None
    try:
        if scenario.CASE in ("trainer", "fabric"):
            install(MISSING)
            result = with_trainer() if scenario.CASE == "trainer" else with_fabric()
        else:
            install(
                "raise RuntimeError('MPI_Init failed')"
                if scenario.CASE == "another way"
                else f"class COMM_WORLD:\n    Get_size = staticmethod(lambda: {scenario.CASE})\n"
            )
            result = scenario.fabric("plugins.environments").MPIEnvironment.detect()
    except (ImportError, RuntimeError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    scenario.observe(error=error, result=result)
