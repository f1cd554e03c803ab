"""An argument that LightningCLI links on instantiation is not in the checkpoint. Cases: ``subclass`` (subclass mode),
``nested`` (linked to an argument of an argument), ``object`` (a lock is linked), ``parse`` (linked when the arguments
are parsed)."""

from _expect import bug, fixed, same

EXPECT = [
    *[
        bug(
            case,
            stock={"made": 7, "loaded": 0},
            patched={"made": 7, "loaded": 7},
            since=since,
            compare=("made", "loaded"),
        )
        for case, since in (("", ""), ("subclass", "2.4.0"))
    ],
    # The linked object cannot be pickled, or the link was applied when the arguments were parsed.
    same(["object", "parse"], "checkpoint is unchanged", on="2.5.1"),
    fixed("nested", "nested linked argument is saved", stock={"loaded": 0}, on="2.5.1"),
    fixed(
        ["", "subclass"],
        "saved arguments are those of the fixed release",
        stock={"loaded": 0},
        compare="saved",
        on="2.5.1",
    ),
]

import threading

import _scenario as scenario
import torch

CASE = scenario.CASE
BoringModel, BoringDataModule = (
    getattr(scenario.pytorch("demos.boring_classes"), name) for name in ("BoringModel", "BoringDataModule")
)


class Data(BoringDataModule):
    def __init__(self, size: int = 4):
        super().__init__()
        self.classes = 7
        self.lock = threading.Lock()


class Head:
    def __init__(self, classes: int = 0, depth: int = 1):
        self.classes = classes


class Model(BoringModel):
    def __init__(self, head: Head = None, width: int = 5, classes: int = 0, lock: object = None):
        super().__init__()
        self.save_hyperparameters()
        self.classes = head.classes if head else classes


TARGET = {"nested": "model.head.init_args.classes", "subclass": "model.init_args.classes", "object": "model.lock"}


class CLI(scenario.pytorch("cli").LightningCLI):
    def add_arguments_to_parser(self, parser):
        if CASE == "parse":
            parser.link_arguments("data.size", "model.classes")
        else:
            source = "data.lock" if CASE == "object" else "data.classes"
            parser.link_arguments(source, TARGET.get(CASE, "model.classes"), apply_on="instantiate")


if __name__ == "__main__":
    args = {"subclass": ["--model=__main__.Model"], "nested": ["--model.head=__main__.Head"]}.get(CASE, [])
    cli = CLI(
        Model,
        Data,
        subclass_mode_model=CASE == "subclass",
        save_config_callback=None,
        trainer_defaults={
            **scenario.QUIET,
            "enable_checkpointing": True,
            "accelerator": "cpu",
            "max_steps": 1,
            "limit_val_batches": 0,
        },
        args=["fit", *args, "--model.width=6"],
    )
    path = cli.trainer.checkpoint_callback.best_model_path
    saved = torch.load(path, weights_only=False)["hyper_parameters"]
    scenario.observe(made=cli.model.classes, saved=saved, loaded=Model.load_from_checkpoint(path).classes)
