"""A program whose work is done by workers that don't run this script: those of joblib or submitit.

    worker_libraries.py LIBRARY [TOGGLE]

It prints one line of JSON: the patches that are applied in its process and in a worker, after a Trainer was made.
"""

import json
import sys

import lightning_patches

if len(sys.argv) > 2:
    lightning_patches.activate(sys.argv[2])

import warnings

warnings.filterwarnings("ignore")

import lightning.pytorch as pl


def work(_):
    import os
    import sys

    from lightning.pytorch.loops.fetchers import _DataFetcher
    from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection

    pl.Trainer(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    functions = (_ResultCollection.update_metrics, _DataFetcher.reset)
    names = [name for function in functions for name in getattr(function, "__lightning_patches__", ())]
    patches = sys.modules.get("lightning_patches")
    applied = sum(entry.verdict == "applied" for entry in patches.report()) if patches is not None else None
    return {"live": names, "applied": applied, "pid": os.getpid()}


def main():
    if sys.argv[1] == "joblib":
        import joblib

        return joblib.Parallel(n_jobs=2)(joblib.delayed(work)(number) for number in range(2))
    import submitit

    executor = submitit.LocalExecutor(folder="jobs")
    executor.update_parameters(timeout_min=5)
    job = executor.submit(work, 0)
    found = job.result()
    sys.stderr.write(job.stderr() or "")
    return [found]


if __name__ == "__main__":
    here = work(0)
    print(json.dumps({"here": here, "workers": main()}))
