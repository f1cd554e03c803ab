"""The program of a trial: a situation, extended. Run by ``judge.py`` in an arm, in a process of its own."""

import gc
import json
import multiprocessing
import os
import resource
import shutil
import signal
import warnings
from collections import Counter
from typing import Any

from tests.extension_points import situations, spies
from tests.healthy import watch

SPEC = json.loads(os.environ["EXTENSION"])


def arrange() -> None:
    """What is so before the situation begins."""
    kind, extension = SPEC["kind"], SPEC
    if os.environ.get("TOGGLE") is not None:  # another selection than that of the process from which this one is forked
        import lightning_patches

        lightning_patches.deactivate()
        lightning_patches.activate(os.environ["TOGGLE"])
    if kind == "wrapper":
        for location in extension["of"].split():
            spies.wrap(location, extension["how"], extension.get("tells", True))
    elif kind == "errors":  # what stock says is silenced, all else is an error
        warnings.simplefilter("error")
        for message in (*extension["but"], ".*treespec"):  # of torch, once or more often
            warnings.filterwarnings("ignore", message=message)
    elif kind == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (extension["bytes"], resource.RLIM_INFINITY))
    elif kind == "spawn":
        multiprocessing.set_start_method("spawn", force=True)
    elif kind == "registered":
        import fsspec

        x = situations.EXTENSION
        x.kind = "documented"
        known = fsspec.get_filesystem_class(extension["scheme"])
        fsspec.register_implementation(extension["scheme"], x.derived(known), clobber=True)
        x.kind = kind
    elif kind == "read-only":
        os.makedirs("best")
        os.setuid(65534)


def main() -> None:
    situations.EXTENSION = spies.Extension(SPEC)
    arrange()
    spies.watch_files()
    x, situation = situations.EXTENSION, situations.SITUATIONS[SPEC["situation"]]
    if SPEC["kind"] == "repeated":
        repeat(x, situation)
        return
    situation(x)
    if SPEC["kind"] == "plain":
        watch.note("held", f"{x.alive()} until collected")
        gc.collect()
        watch.note("held", f"{x.alive()}")


def repeat(x: spies.Extension, situation: Any) -> None:
    """Note what is left of each repetition: objects that are kept, or of which there are more each time."""
    counts = []
    for turn in range(SPEC["times"] + WARM):
        directory = os.path.join(watch.CWD, f"turn-{turn}")
        os.mkdir(directory)
        os.chdir(directory)
        situation(x)
        os.chdir(watch.CWD)
        shutil.rmtree(directory)
        gc.collect()
        if turn in (WARM - 1, SPEC["times"] + WARM - 1):
            counts.append(len(gc.get_objects()))
    watch.note("held", f"{Counter(x.alive())}")
    watch.note("grows", f"by {(counts[1] - counts[0]) // SPEC['times']} objects each time")


WARM = 5
"""Repetitions after which caches are full."""


if __name__ == "__main__":
    watch.run(main)
