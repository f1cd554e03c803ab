"""CVE-2026-58659: hyperparameters in a checkpoint name the function by which ``load_from_checkpoint`` makes the model.
Cases: ``function`` and ``datamodule`` (a function that no script knows of), ``not a name``, ``class`` (a class of the
same kind, by way of LightningCLI's own function), ``trusted`` (a function that the script trusts; shim only), ``cli``
(LightningCLI's own checkpoint of a subclass, in several places, and of the class itself)."""

from _expect import bug, fixed, patched, same


def _refused(observations):
    """Return if anything was imported or called, and the type of the error."""
    return [{**rank, "loaded": [text.partition(":")[0] for text in rank["loaded"]]} for rank in observations]


ASKS = "ValueError: The checkpoint asks for"


def untouched(start, *words):
    """Return a check that nothing is imported or called, and that the error has this start and these words."""
    return lambda seen: (
        not seen["imported"]
        and not seen["called"]
        and seen["loaded"][0].startswith(start)
        and all(word in seen["loaded"][0] for word in words)
    )


EXPECT = [
    # Not compared: the words of the error, which name the way out of each
    bug(["function", "datamodule"], stock=lambda seen: seen["imported"] or bool(seen["called"]), compare=_refused),
    fixed(
        "function",
        "function named in the file is not called",
        stock={"imported": True, "called": ["build"]},
        patched=untouched(ASKS, "lightning_patches.trust_instantiator('_named_in_file.build')"),
        on=("2.3.0", "2.6.5"),
    ),
    fixed(
        "class",
        "class named in the file is not imported",
        stock={"imported": True},
        patched=untouched(f"{ASKS} the class '_named_in_file.Model'"),
    ),
    fixed(
        "not a name",
        "invalid name is refused",
        stock=lambda seen: seen["loaded"][0].startswith("AttributeError"),
        patched=untouched(ASKS),
        on="2.4.0",
    ),
    patched(
        "trusted",
        "trusted function is called",
        {"loaded": ["Model"], "imported": True, "called": ["build"]},
        on="2.4.0",
    ),
    same(
        "cli",
        "checkpoints of LightningCLI load as on stock",
        {"loaded": ["Deeper", "Deeper.Nested", "Deeper.Nested", "Lazy", "Model"]},
        on=("2.5.2", "2.6.5"),
    ),
    same(
        "function",
        "other releases are unchanged",
        untouched(""),
        toggle="checkpoint-instantiator,strict",
        on=("2.2.5", "2.6.6"),
    ),
]

import sys
import types

import _scenario as scenario
import torch
from _model import Module

CLI_FUNCTION = f"{scenario.pl.__name__}.cli.instantiate_module"


class Model(Module):
    def __init__(self, width: int = 2, **kwargs):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(width, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()


class Deeper(Model):
    class Nested(Model):
        pass


Nested = Deeper.Nested


class Lazy(Model):
    """A package that imports its submodules lazily, on attribute access."""

    __module__ = "package.submodule"


def package_getattr(name):
    if name == "Lazy":
        return Lazy
    raise AttributeError(name)


package = types.ModuleType("package")
package.submodule = types.ModuleType("package.submodule")
package.submodule.Lazy = Lazy
package.__path__, package.__getattr__ = [], package_getattr
sys.modules.update({"package": package, "package.submodule": package.submodule})


class Data(scenario.pl.LightningDataModule):
    def __init__(self, size: int = 2):
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(self.hparams.size, 2))


def saved(cls, **named):
    """Write a checkpoint like Lightning's, with ``named`` among the hyperparameters of ``cls``."""
    path = "model.ckpt"
    trainer = scenario.trainer(max_steps=0)
    trainer.fit(Model(), datamodule=Data())
    trainer.save_checkpoint(path)
    content = torch.load(path, weights_only=False)
    content[cls.CHECKPOINT_HYPER_PARAMS_KEY].update(named)
    torch.save(content, path)
    return path


def load(cls, path):
    try:
        return type(cls.load_from_checkpoint(path)).__qualname__
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    loaded = []
    if scenario.CASE == "function":
        loaded.append(load(Model, saved(Model, _instantiator="_named_in_file.build")))
    elif scenario.CASE == "datamodule":
        loaded.append(load(Data, saved(Data, _instantiator="_named_in_file.build")))
    elif scenario.CASE == "not a name":
        loaded.append(load(Model, saved(Model, _instantiator=["_named_in_file", "build"])))
    elif scenario.CASE == "class":
        named = {"_instantiator": CLI_FUNCTION, "_class_path": "_named_in_file.Model"}
        loaded.append(load(Model, saved(Model, **named)))
    elif scenario.CASE == "trusted":
        import lightning_patches

        lightning_patches.trust_instantiator("_named_in_file.build")
        loaded.append(load(Model, saved(Model, _instantiator="_named_in_file.build")))
    else:
        paths = ("__main__.Deeper", "__main__.Deeper.Nested", "__main__.Nested", "package.Lazy")
        loaded += [load(Model, saved(Model, _instantiator=CLI_FUNCTION, _class_path=path)) for path in paths]
        loaded.append(load(Model, saved(Model, _instantiator=CLI_FUNCTION)))
    named = sys.modules.get("_named_in_file")
    scenario.observe(loaded=loaded, imported=named is not None, called=getattr(named, "calls", []))
