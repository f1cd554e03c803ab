"""Inspecting a LightningModule or LightningDataModule raises the error of load_from_checkpoint's call."""

from _expect import bug

EXPECT = [bug(stock="load_from_checkpoint` cannot be called on an instance", patched={"refused": [True, True]})]

import inspect

import _scenario as scenario

boring = scenario.pytorch("demos.boring_classes")


def error_of(function, *args):
    try:
        function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    model, data = boring.BoringModel(), boring.BoringDataModule()
    classes = [type(model), type(data)]
    scenario.observe(
        of_classes=[inspect.getdoc(cls.load_from_checkpoint) is not None for cls in classes],
        of_files=["FileNotFoundError" in error_of(cls.load_from_checkpoint, "not-there.ckpt") for cls in classes],
    )
    scenario.trainer(fast_dev_run=True).fit(model)  # before, the Trainer's attributes raise
    with scenario.observing_errors():
        found = [dict(inspect.getmembers(instance)) for instance in (model, data)]
    scenario.observe(
        refused=[
            "cannot be called" in error_of(members["load_from_checkpoint"], "not-there.ckpt") for members in found
        ],
        names=[members["load_from_checkpoint"].__name__ for members in found],
    )
