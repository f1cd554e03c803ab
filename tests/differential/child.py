"""Runs one program, in a process that has the Lightning and the patches of its variant (see ``trial.py``)."""

import gc
import importlib
import json
import os
import runpy
import sys
import threading

if os.environ["SCENARIO_SHIM"] == "1":
    import lightning_patches

from tests.differential import extending, observing, regressions
from tests.differential.observing import OUT, note

TASK = json.loads(os.environ["DIFFERENTIAL"])
PATCHES = os.path.join("lightning_patches", "patches", "")


def select_patches() -> None:
    """Select other patches than the parent process, or plant a bug in a patch."""
    if TASK["toggle"] is None and not TASK["regression"]:
        return
    lightning_patches.deactivate()
    if TASK["regression"]:
        regressions.plant(TASK["regression"])
    lightning_patches.activate(TASK["toggle"])


def note_called() -> None:
    """Record the files of the patches whose code is called from now on."""
    seen = set()

    def profile(frame, event, argument):  # type: ignore[no-untyped-def]
        name = frame.f_code.co_filename
        if event == "call" and PATCHES in name and name not in seen:
            seen.add(name)
            with open(os.path.join(OUT, "called"), "a") as file:
                file.write(name.rpartition(PATCHES)[2] + "\n")

    threading.setprofile(profile)
    sys.setprofile(profile)


def run() -> None:
    if not TASK["parameters"]:
        script, *sys.argv[1:] = TASK["file"].split()
        runpy.run_path(script, run_name="__main__")
        return
    program = getattr(importlib.import_module(TASK["file"]), TASK["function"])
    spec = TASK["extension"]
    own = extending.Own(spec)
    extending.arrange(spec)
    known = {"observe": observing.observe, "own": own, "seed": TASK["seed"], "process": TASK["process"]}
    given = {name: known[name] for name in TASK["parameters"]}
    program(**given)
    gc.collect()
    note("held", own.alive())


def main() -> None:
    select_patches()
    observing.begin()
    if TASK["note_called"]:
        note_called()
    try:
        run()
        note("end", "returns")
    except BaseException as error:
        note("end", f"raises {observing.shown(error)}")
        raise
    finally:
        sys.setprofile(None)
        if os.environ.get("LOCAL_RANK", "0") == "0":
            observing.note_files()


if __name__ == "__main__":
    main()
