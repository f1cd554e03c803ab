import json
import subprocess
import sys

import pytest

from tests.support.variants import Variant, environment_of

NAME = "import-without-dynamo"

RELEASES = ("2.3.0", "2.6.6")


def printed(program, release, toggle=f"default,{NAME}", distribution="lightning", **variables):
    """Return what a program prints as JSON, with the patch; with ``toggle=None`` on stock."""
    shim = toggle is not None
    environment = {**environment_of(Variant(distribution, release, shim=shim)), "LIGHTNING_PATCHES": toggle or "off"}
    done = subprocess.run(
        [sys.executable, "-c", ("import lightning_patches\n" if shim else "") + program],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOADED = """
import json, sys
{before}
import lightning.pytorch, lightning.fabric
loaded = "torch._dynamo" in sys.modules
import torch
import torch._dynamo
print(json.dumps([loaded, torch._dynamo is sys.modules["torch._dynamo"], torch._dynamo.OptimizedModule.__module__]))
"""


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("toggle", "before", "loaded"), [
    (None, "", True),
    ("default", "", True),
    (f"default,{NAME}", "", False),
    (NAME, "", False),
    (NAME, "import torch._dynamo", True),
])  # fmt: skip
def test_dynamo_is_imported_unless_the_patch_is_enabled(release, toggle, before, loaded):
    program = LOADED.format(before=before)
    assert printed(program, release, toggle) == [loaded, True, "torch._dynamo.eval_frame"]


CLASS = """
import json, sys, typing
import torch
from lightning.fabric import wrappers
from lightning.fabric.wrappers import OptimizedModule, _unwrap_compiled, is_wrapped
from lightning.pytorch.utilities import compile as utilities
import lightning.pytorch as pl

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

model = Model()
seen = [isinstance(model, OptimizedModule), issubclass(Model, OptimizedModule), is_wrapped(model)]
seen += [_unwrap_compiled(model)[1] is None, utilities._maybe_unwrap_optimized(model) is model]
hints = sorted(typing.get_type_hints(_unwrap_compiled))
loaded = "torch._dynamo" in sys.modules
compiled = torch.compile(model, backend="eager")
other = torch.compile(torch.nn.Linear(1, 1), backend="eager")

class Sub(OptimizedModule):
    pass

seen += [isinstance(compiled, OptimizedModule), isinstance(model, OptimizedModule), is_wrapped(other)]
seen += [issubclass(type(compiled), OptimizedModule), issubclass(Sub, OptimizedModule), issubclass(Sub, type(other))]
seen += [isinstance(OptimizedModule(torch.nn.Linear(1, 1), lambda function: function), type(compiled))]
seen += [_unwrap_compiled(other)[0] is other._orig_mod, callable(OptimizedModule.forward)]
seen += [utilities.from_compiled(compiled) is model, utilities.to_uncompiled(compiled) is model]
print(json.dumps([seen, hints, loaded]))
"""


@pytest.mark.parametrize("release", RELEASES)
def test_optimized_module_behaves_as_torchs_class(release):
    stock, patched = printed(CLASS, release, None), printed(CLASS, release)
    assert stock[:2] == patched[:2]
    assert (stock[2], patched[2]) == (True, False)


FUNCTIONS = """
import json, sys
import torch
import pytorch_lightning as pl
from lightning_fabric import wrappers
from pytorch_lightning.utilities import compile as utilities

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def predict_step(self, batch, batch_idx):
        return self.layer(batch)

model, errors = Model(), []
options = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
pl.Trainer(accelerator="cpu", **options).predict(model, torch.utils.data.DataLoader(torch.ones(2, 1)))
for function in (utilities.from_compiled, utilities.to_uncompiled, utilities._maybe_unwrap_optimized):
    try:
        function(torch.nn.Linear(1, 1))
    except Exception as error:
        errors.append(repr(error))
unwrapped = [utilities._maybe_unwrap_optimized(model) is model]
unwrap = getattr(wrappers, "_unwrap_compiled", lambda module: module)
unwrapped.append(unwrap(model) in (model, (model, None)))
loaded = "torch._dynamo" in sys.modules
compiled = torch.compile(model, backend="eager")
unwrapped += [utilities.from_compiled(compiled) is model, utilities.to_uncompiled(compiled) is model]
unwrapped += [utilities._maybe_unwrap_optimized(compiled) is model, type(unwrap(compiled)).__name__]
print(json.dumps([unwrapped, errors, loaded]))
"""


@pytest.mark.parametrize("release", ["2.0.0", "2.0.3", "2.2.5"])
def test_predict_of_an_older_release_does_not_import_dynamo(release):
    toggles = (None, f"default,{NAME}")
    stock, patched = (printed(FUNCTIONS, release, toggle, "pytorch-lightning") for toggle in toggles)
    assert stock[:2] == patched[:2]
    assert (stock[2], patched[2]) == (True, False)


METHODS = """
import copy, inspect, json, pickle, sys
import torch
from lightning.pytorch.trainer.connectors.logger_connector import result
import lightning.pytorch as pl

methods = [result._ResultCollection.log, result._ResultCollection.update_metrics]
parameters = [list(inspect.signature(one).parameters) for one in methods]
seen = [[one.__name__, one.__qualname__, one.__module__, inspect.getsource(one)]
        for one in methods]
seen += [result.torch is torch, pickle.loads(pickle.dumps(methods)) == methods, copy.deepcopy(methods) == methods]
print(json.dumps([*seen, parameters]))
"""


def test_disabled_methods_are_pickled_and_shown_as_on_stock():
    assert printed(METHODS, "2.6.6", NAME) == printed(METHODS, "2.6.6", None)


THREADS = """
import json, sys, threading
from lightning.fabric.wrappers import OptimizedModule
import torch

model, errors, ends = torch.nn.Linear(1, 1), [], threading.Event()

def ask():
    while not ends.is_set():
        try:
            assert not isinstance(model, OptimizedModule)
        except BaseException as error:
            errors.append(repr(error))

threads = [threading.Thread(target=ask) for _ in range(4)]
[thread.start() for thread in threads]
import torch._dynamo
ends.set()
[thread.join() for thread in threads]
print(json.dumps([errors, isinstance(torch.compile(model, backend="eager"), OptimizedModule)]))
"""


def test_class_check_works_while_another_thread_imports_dynamo():
    assert printed(THREADS, "2.6.6") == [[], True]


RELOADED = """
import importlib, json, sys
import lightning_patches
import lightning.pytorch
from lightning.fabric import wrappers
from lightning.pytorch.trainer.connectors.logger_connector import result
modules = [wrappers, result]
seen = []
for _ in modules:
    [importlib.reload(module) for module in modules]
    seen.append("torch._dynamo" in sys.modules)
import torch
import torch._dynamo
[importlib.reload(module) for module in modules]
seen += [wrappers.OptimizedModule is torch._dynamo.OptimizedModule]
seen += [hasattr(result._ResultCollection.log, "_torchdynamo_disable"), result.torch is torch]
left = lightning_patches.deactivate()
added = {"__import__", "__build_class__"} & {*vars(wrappers), *vars(result)}
[importlib.reload(module) for module in modules]
print(json.dumps([*seen, left, sorted(added), wrappers.OptimizedModule is torch._dynamo.OptimizedModule]))
"""


def test_reloaded_modules_use_dynamo_once_it_is_imported():
    assert printed(RELOADED, "2.6.6") == [False, False, True, True, True, [], [], True]


SUBMODULE = """
import json
import torch
import lightning.pytorch
print(json.dumps(hasattr(torch.distributed, "fsdp")))
"""


def test_submodule_that_only_dynamo_imports_is_missing():
    """The first reason why the patch is opt-in."""
    assert printed(SUBMODULE, "2.6.6", None) is printed(SUBMODULE, "2.6.6", "default") is True
    assert printed(SUBMODULE, "2.6.6") is False


VARIABLE = """
import json, os
import lightning.pytorch, torch
os.environ["TORCHINDUCTOR_FREEZING"] = "1"
import torch._inductor.config
print(json.dumps(torch._inductor.config.freezing))
"""


def test_variable_that_is_set_after_the_import_has_an_effect():
    """The second reason why the patch is opt-in."""
    assert printed(VARIABLE, "2.6.6", None) is printed(VARIABLE, "2.6.6", "default") is False
    assert printed(VARIABLE, "2.6.6") is True


VALIDATED = """
import json, sys
import torch
import lightning.pytorch as pl
from lightning.pytorch.demos.boring_classes import BoringModel

class Model(BoringModel):
    def validation_step(self, batch, batch_idx):
        loss = self.layer(batch).sum()
        self.log("loss", loss)
        return loss

options = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
pl.seed_everything(3)
(found,) = pl.Trainer(accelerator="cpu", limit_val_batches=3, **options).validate(Model(), verbose=False)
print(json.dumps(found))
"""


@pytest.mark.parametrize("toggle", ["default", f"default,{NAME}", NAME])
@pytest.mark.parametrize("release", ["2.2.5", *RELEASES])
def test_logged_values_are_those_of_stock(release, toggle):
    assert printed(VALIDATED, release, toggle) == printed(VALIDATED, release, None)
