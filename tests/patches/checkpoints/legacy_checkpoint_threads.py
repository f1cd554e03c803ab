"""Two threads load checkpoints at the same time, and one removes the modules that the other needs. Cases: ``model``
(``load_from_checkpoint``), ``context`` (``pl_legacy_patch`` by itself), and programs that must stay unchanged: ``one
after the other``, ``error`` (the first load fails), ``fork`` (a process is forked while a checkpoint is being loaded,
and loads one too), ``nested``."""

from _expect import bug, same

EXPECT = [
    bug(
        ["model", "context"],
        stock=lambda seen: seen["found"]["first"].startswith("KeyError: "),
        patched=lambda seen: not any("Error" in value for value in seen["found"].values()) and not seen["left"],
    ),
    # With 2.0.3 the forked process, and a nested load, wait forever.
    same(["error", "one after the other", "nested"], "loads without contention are unchanged"),
    same("fork", "load in forked process is unchanged", lambda seen: seen["found"]["child"] == seen["found"]["first"]),
]

import multiprocessing
import os
import threading

import _scenario as scenario
import torch

legacy_patch = scenario.pytorch("utilities.migration").pl_legacy_patch
directory = os.environ.get("SCENARIO_OUT", ".")
inside, other_is_done = threading.Event(), threading.Event()


class Model(scenario.BoringModel):
    pass


def save(name):
    torch.manual_seed(len(name))
    path = os.path.join(directory, name)
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    trainer.fit(Model())
    trainer.save_checkpoint(path)
    return path


def slowly(storage, location):
    """A load that waits until the other is done, or for a second."""
    inside.set()
    other_is_done.wait(1)
    return storage


def load(path, map_location=None):
    try:
        if scenario.CASE == "context":
            with legacy_patch():
                return float(torch.load(path, map_location=map_location)["state_dict"]["layer.bias"][0])
        return float(Model.load_from_checkpoint(path, map_location=map_location).layer.bias[0])
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0].replace(directory, "")


def at_the_same_time(first, second):
    found = {}

    def first_thread():
        found["first"] = load(first, slowly)

    def second_thread():
        inside.wait(30)
        found["second"] = load(second)
        other_is_done.set()

    threads = [threading.Thread(target=target) for target in (first_thread, second_thread)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def in_a_fork(path):
    """Fork a child while a thread of its parent is loading."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    found = {}

    def thread():
        found["first"] = load(path, slowly)

    loading = threading.Thread(target=thread)
    loading.start()
    inside.wait(30)
    child = context.Process(target=lambda: results.put(load(path)))
    child.start()
    found["child"] = results.get(timeout=60)
    child.join()
    other_is_done.set()
    loading.join()
    return found


def nested(path):
    try:
        with legacy_patch():
            return load(path)
    except KeyError as error:
        return f"KeyError: {error}"


if __name__ == "__main__":
    first, second = save("first.ckpt"), save("second one.ckpt")
    if scenario.CASE in ("model", "context"):
        found = at_the_same_time(first, second)
    elif scenario.CASE == "fork":
        found = in_a_fork(first)
    elif scenario.CASE == "nested":
        found = nested(first)
    else:
        found = [load(os.path.join(directory, "none.ckpt") if scenario.CASE == "error" else first), load(second)]
    left = hasattr(scenario.pytorch("utilities.argparse"), "_gpus_arg_default")
    scenario.observe(found=found, left=left)
