"""LightningCLI gets a checkpoint to which the model added an object of a custom class. CASE "elsewhere": the file is
not in the trusted directory. CASE "allowed": the script allows the class, and trusts no directory. CASE "calls": the
file calls a function as it is read. CASE "plain": the file holds no objects. CASE "swapped": it is a link from
elsewhere to the trusted file, which another user redirects to their file after the check. CASE "whole": the Trainer
then also loads the file, which another patch handles."""

from _expect import bug, patched, same, whole_run

REFUSED = "Weights only load failed"

# Only for this file.
READ = {"width": 5, "called": False, "allowed": [], "warnings": []}


EXPECT = [
    bug(stock=REFUSED, like="allowed", compare="width"),
    same(["plain", "allowed"], "plain file is read as on stock"),
    patched("", "file in a trusted directory is read", [READ], on=("2.5.5", "2.6.6")),
    patched("whole", "whole checkpoint in a trusted directory is read", [READ]),
    patched(
        "elsewhere",
        "file in another directory is refused as on stock",
        whole_run(lambda result: not result.ok and REFUSED in result.output and "width" not in result.observations[0]),
    ),
    patched("swapped", "link that changes during the check is harmless", {"width": 5}, on=("2.5.5", "2.6.6")),
]

import sys
from pathlib import Path

import _scenario as scenario
import torch


class Options:
    width = 3


class Caller:
    def __reduce__(self):
        return Path.mkdir, (Path("called"),)


class Model(scenario.BoringModel):
    def __init__(self, width: int = 2):
        super().__init__()
        self.save_hyperparameters()
        self.width = width


class Parsed(scenario.pl.Trainer):
    def test(self, model=None, dataloaders=None, ckpt_path=None, verbose=True, datamodule=None):
        """Do nothing: only the command line matters here."""


def turn_once_seen(link, other):
    """Redirect the link between the check of the file and its load."""
    look = torch.serialization.get_unsafe_globals_in_checkpoint

    def get_unsafe_globals_in_checkpoint(file):
        seen = look(file)
        link.unlink()
        link.symlink_to(other)
        return seen

    torch.serialization.get_unsafe_globals_in_checkpoint = get_unsafe_globals_in_checkpoint


def trust(directory):
    """Trust the directory, with the function of the package or of a fork."""
    if "lightning_patches" in sys.modules:
        sys.modules["lightning_patches"].trust_checkpoints(directory)
    else:
        getattr(scenario.pytorch("cli"), "trusted_directories", []).append(str(directory))


if __name__ == "__main__":
    directory, elsewhere = Path("runs").absolute(), Path("other").absolute()
    directory.mkdir()
    elsewhere.mkdir()
    path = (elsewhere if scenario.CASE == "elsewhere" else directory) / "model.ckpt"
    first = scenario.trainer(max_steps=1, limit_val_batches=0)
    first.fit(Model(5))
    first.save_checkpoint(path)
    content = torch.load(path, weights_only=False)
    if scenario.CASE != "plain":
        content["of_the_model"] = Caller() if scenario.CASE == "calls" else Options()
    torch.save(content, path)
    if scenario.CASE == "swapped":
        theirs, trusted, path = elsewhere / "theirs.ckpt", path, elsewhere / "link.ckpt"
        torch.save({**content, "hyper_parameters": {"width": 7}}, theirs)
        path.symlink_to(trusted)
        turn_once_seen(path, theirs)
    if scenario.CASE == "allowed":
        torch.serialization.add_safe_globals([Options])
    else:
        trust(directory)
    with scenario.observing_errors(), scenario.observing_warnings():
        try:
            cli = scenario.pytorch("cli").LightningCLI(
                Model,
                trainer_class=scenario.pl.Trainer if scenario.CASE == "whole" else Parsed,
                save_config_callback=None,
                trainer_defaults={**scenario.QUIET, "accelerator": "cpu", "limit_test_batches": 1},
                args=["test", f"--ckpt_path={path}"],
            )
            scenario.observe(width=cli.model.width)
        finally:
            scenario.observe(
                called=Path("called").exists(),
                allowed=[one.__name__ for one in torch.serialization.get_safe_globals() if one is Options],
            )
