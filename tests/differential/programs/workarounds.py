"""Workarounds for bugs that a default patch fixes or warns about, rewritten after public code.

A workaround is a working program: with the patches it must do the same as on stock. Each docstring names the upstream
issue. `tests/differential/test_workarounds.py` has the release of each, and the patch that replaces it.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import types
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from tests.differential.observing import Tuner, Watch, fabric, module, pl, precision

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}


class Model(pl.LightningModule):
    """A linear layer, and batches of numbers."""

    def __init__(self, lr: float = 0.125) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.lr, self.layer = lr, nn.Linear(1, 1)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss = self.layer(batch).pow(2).mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self.layer(batch).pow(2).mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.5)


class Numbers(Dataset[Any]):
    def __init__(self, length: int) -> None:
        self.numbers = torch.arange(1.0, length + 1)[:, None] / length

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.numbers[index]


def data(length: int, **options: Any) -> Any:
    return DataLoader(Numbers(length), 2, **options)


def fit(model: Any, path: Any = None, **options: Any) -> Any:
    callbacks = [*options.pop("callbacks", []), Watch()]
    saves = any(isinstance(callback, pl.callbacks.ModelCheckpoint) for callback in callbacks)
    options = {**QUIET, "max_epochs": 2, "logger": False, "enable_checkpointing": saves, **options}
    trainer = pl.Trainer(**options, callbacks=callbacks)
    trainer.fit(model, data(16), data(6), ckpt_path=path)
    return trainer


def saved(**options: Any) -> Any:
    return pl.callbacks.ModelCheckpoint("kept", **{"save_top_k": -1, "filename": "{step}", **options})


class Validated(Model):
    """Records the step and number of batches of each validation, and if it is a sanity check."""

    def __init__(self, observe: Any) -> None:
        super().__init__()
        self.observe, self.batches, self.first = observe, 0, True

    def on_validation_start(self) -> None:
        self.batches = 0

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        super().validation_step(batch, batch_idx)
        self.batches += 1

    def counts(self) -> bool:
        return not self.trainer.sanity_checking

    def on_validation_epoch_end(self) -> None:
        self.observe("validated", [self.global_step, self.batches, self.counts()])


def in_two_parts(model: Any, callback: Any = saved, changed: Any = lambda trainer: None) -> None:
    """A training that is resumed from a checkpoint that was saved at the end of a validation within the epoch."""
    options = {"val_check_interval": 4}
    fit(model(), callbacks=[callback()], **options)
    trainer = pl.Trainer(**QUIET, max_epochs=2, logger=False, callbacks=[callback(), Watch()], **options)
    changed(trainer)
    trainer.fit(model(), data(16), data(6), ckpt_path="kept/step=4.ckpt")


def validation_marked(observe: Any) -> None:
    """Discussion 18110: turns the first validation after a resume into a sanity check."""

    class Marked(Validated):
        def on_validation_model_zero_grad(self) -> None:
            super().on_validation_model_zero_grad()
            if self.trainer.ckpt_path is not None and self.first:
                self.trainer.sanity_checking, self.first = True, False

    in_two_parts(lambda: Marked(observe))


def validations_of_resumed_epoch_marked(observe: Any) -> None:
    """Issue 19549: validations are sanity checks while the loop says that it is restarting."""

    class Marked(Validated):
        def on_validation_epoch_start(self) -> None:
            if self.trainer.ckpt_path is not None and self.trainer.fit_loop.restarting:
                self.trainer.sanity_checking = True

    in_two_parts(lambda: Marked(observe))


def validation_begun_anew(observe: Any) -> None:
    """Issue 19549: the progress of the validation is cleared, so that it is repeated as a whole."""

    class Clears(pl.Callback):
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            trainer.fit_loop.epoch_loop.val_loop.batch_progress.reset()
            trainer.save_checkpoint(f"kept/step={trainer.global_step}.ckpt")

    class Cleared(Validated):
        def on_load_checkpoint(self, checkpoint: Any) -> None:
            progress = checkpoint["loops"]["fit_loop"]["epoch_loop.val_loop.batch_progress"]
            progress.update(current=dict.fromkeys(progress["current"], 0), is_last_batch=False)

    in_two_parts(lambda: Validated(observe), Clears)
    in_two_parts(lambda: Cleared(observe))


def epoch_loop_replaced(observe: Any) -> None:
    """Issue 18941: a loop that does not validate while it is restarting."""

    class Loop(module("pytorch.loops.training_epoch_loop")._TrainingEpochLoop):  # type: ignore[misc]
        def _should_check_val_fx(self, *arguments: Any) -> bool:
            return not self.restarting and super()._should_check_val_fx(*arguments)

    def changed(trainer: Any) -> None:
        trainer.fit_loop.epoch_loop = Loop(trainer, trainer.min_steps, trainer.max_steps)

    in_two_parts(lambda: Validated(observe), changed=changed)


def param_groups_refreshed(observe: Any) -> None:
    """Issue 17296: updates the wrappers in self.optimizers() from the restored optimizer."""

    class Manual(Model):
        automatic_optimization = False

        def on_train_start(self) -> None:
            self.optimizers().param_groups = self.optimizers()._optimizer.param_groups

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.optimizers()
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
            optimizer.zero_grad()
            self.manual_backward(self.layer(batch).pow(2).mean())
            optimizer.step()

    for epochs in (1, 2):
        model = Manual()
        fit(model, "kept/step=8.ckpt" if epochs > 1 else None, max_epochs=epochs, callbacks=[saved()])
        observe("optimizer", model.optimizers().optimizer.state_dict())


def steps_counted_once(observe: Any) -> None:
    """Issue 17958: replaces the hooks of one of two optimizers, so that only the other counts steps."""

    class Two(Model):
        automatic_optimization = False

        def configure_optimizers(self) -> Any:
            return [torch.optim.SGD([tensor], lr=self.lr) for tensor in self.layer.parameters()]

        def training_step(self, batch: Any, batch_idx: int) -> None:
            first, second = self.optimizers()
            second._on_before_step = lambda: self.trainer.profiler.start("optimizer_step")
            second._on_after_step = lambda: self.trainer.profiler.stop("optimizer_step")
            for optimizer in (first, second):
                optimizer.zero_grad()
                self.manual_backward(self.layer(batch).pow(2).mean())
                optimizer.step()

    for epochs in (1, 2):
        trainer = fit(Two(), "kept/step=8.ckpt" if epochs > 1 else None, max_epochs=epochs, callbacks=[saved()])
        observe("steps", trainer.global_step)


def steps_moved_to_cpu(observe: Any) -> None:
    """Issue 19955: moves the optimizer's step counts back to the CPU after a resume."""

    class Adam(Model):
        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=self.lr)

        def on_train_start(self) -> None:
            for optimizer in self.trainer.optimizers:
                for state in optimizer.state.values():
                    state["step"] = state["step"].cpu()

    for epochs in (1, 2):
        fit(Adam(), "kept/step=8.ckpt" if epochs > 1 else None, max_epochs=epochs, callbacks=[saved()])


def progress_corrected(observe: Any) -> None:
    """Issue 18060: corrects the counts in a checkpoint within an epoch when it is loaded."""

    class Corrected(Model):
        def on_load_checkpoint(self, checkpoint: Any) -> None:
            loops = checkpoint["loops"]["fit_loop"]
            for counts in ("total", "current"):
                batches = loops["epoch_loop.batch_progress"][counts]
                batches["completed"] = batches["processed"]
            loops["epoch_loop.state_dict"]["_batches_that_stepped"] = checkpoint["global_step"]

    for path in (None, "kept/step=6.ckpt", "kept/step=8.ckpt"):
        model = Corrected()
        trainer = fit(model, path, callbacks=[saved(every_n_train_steps=2)])
        observe("counted", [trainer.global_step, trainer.current_epoch])


def fabric_optimizer_loaded(observe: Any) -> None:
    """Pull request 18488: restores the optimizer, too, after Fabric.load."""
    parts = fabric.Fabric(accelerator="cpu", devices=1)
    for process in (1, 2):
        torch.manual_seed(1)
        model = nn.Linear(1, 1)
        model, optimizer = parts.setup(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.5))
        if process == 2:
            parts.load("state.ckpt", {"model": model, "optimizer": optimizer})
            optimizer.optimizer.load_state_dict(torch.load("state.ckpt", weights_only=False)["optimizer"])
        for number in torch.ones(3, 1, 1):
            optimizer.zero_grad()
            parts.backward(model(number).sum())
            optimizer.step()
        observe("optimizer", optimizer.state_dict())
        parts.save("state.ckpt", {"model": model, "optimizer": optimizer})


class Setting:
    """A user class among the hyperparameters."""

    width = 1


def torch_load_replaced(observe: Any) -> None:
    """Torch 2.6 loads only weights by default: replaces torch.load, or allows all classes."""
    sys.modules["settings"] = types.ModuleType("settings")
    sys.modules["settings"].Setting = Setting  # type: ignore[attr-defined]
    Setting.__module__ = "settings"
    plain = torch.load

    class Configured(Model):
        def __init__(self, setting: Any) -> None:
            super().__init__()
            self.save_hyperparameters()

    def insists(*arguments: Any, **options: Any) -> Any:
        return plain(*arguments, **{**options, "weights_only": False})

    def try_all() -> None:
        trainer = fit(Configured(Setting()), callbacks=[saved()])
        path = trainer.checkpoint_callback.best_model_path
        fit(Configured(Setting()), path, max_epochs=3)
        trainer.validate(Configured(Setting()), data(6), ckpt_path="best", verbose=False)
        observe("loaded", Configured.load_from_checkpoint(path).hparams.setting.width)

    for load in (insists, functools.partial(plain, weights_only=False)):
        torch.load = load  # type: ignore[assignment]
        try:
            try_all()
        except pickle.UnpicklingError:  # the release passes weights_only itself
            observe("refused")
        torch.load = plain
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    try_all()
    del os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"]
    torch.serialization.add_safe_globals([Setting])
    try_all()


def temporary_checkpoint_trusted(observe: Any) -> None:
    """Issue 21757: loads the checkpoint of a finder with all of its objects."""

    class Trusts(pl.callbacks.BatchSizeFinder):
        def scale_batch_size(self, trainer: Any, pl_module: Any) -> None:
            connector = trainer._checkpoint_connector
            restore = connector.restore
            connector.restore = lambda checkpoint_path=None, weights_only=None: restore(checkpoint_path, False)
            try:
                super().scale_batch_size(trainer, pl_module)
            finally:
                connector.restore = restore

    class Configured(Model):
        def __init__(self, setting: Any, batch_size: int = 1) -> None:
            super().__init__()
            self.save_hyperparameters()

        def train_dataloader(self) -> Any:
            return DataLoader(Numbers(16), self.hparams.batch_size)

    model = Configured(Setting())
    finder = Trusts("binsearch", steps_per_trial=1, init_val=2, max_trials=2)
    trainer = pl.Trainer(**QUIET, max_epochs=1, logger=False, callbacks=[finder], enable_checkpointing=False)
    trainer.fit(model, val_dataloaders=data(6))
    observe("size", [finder.optimal_batch_size, model.hparams.batch_size])
    observe("weight", model.layer.weight)


class Compiled(Model):
    """A model, compiled or not, whose checkpoints have the same names."""

    def __init__(self, compiled: bool, renames: str) -> None:
        super().__init__()
        self.renames = renames
        if compiled:
            self.layer = torch.compile(self.layer, backend="eager")  # type: ignore[assignment]

    def on_save_checkpoint(self, checkpoint: Any) -> None:
        if self.renames == "saving":
            state = checkpoint["state_dict"]
            checkpoint["state_dict"] = {name.replace("_orig_mod.", ""): state[name] for name in state}

    def on_load_checkpoint(self, checkpoint: Any) -> None:
        if self.renames == "loading":
            own = {name.replace("_orig_mod.", ""): name for name in self.state_dict()}
            state = checkpoint["state_dict"]
            checkpoint["state_dict"] = {own[name.replace("_orig_mod.", "")]: state[name] for name in state}


def compiled_names_renamed(observe: Any) -> None:
    """Issue 20233: renames entries of a compiled model when a checkpoint is saved or loaded, or after a failed load."""
    fit(Compiled(True, "loading"), max_epochs=1, callbacks=[saved()])
    plain = fit(Compiled(False, "loading"), "kept/step=8.ckpt").lightning_module
    observe("weights", plain.layer.weight)
    fit(Compiled(True, "saving"), max_epochs=1, callbacks=[saved(filename="renamed")])
    state = torch.load("kept/renamed.ckpt", weights_only=False)["state_dict"]
    observe("names", sorted(state))
    plain.load_state_dict(state)
    other = Compiled(True, "")
    try:
        other.load_state_dict(state)
    except RuntimeError:
        other.load_state_dict({name.replace("layer.", "layer._orig_mod."): state[name] for name in state})
    observe("weights", other.layer.weight)


def logged_on_the_models_device(observe: Any) -> None:
    """Issue 18803: moves logged values to the model's device, and drops them between two runs."""

    class Logs(Model):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            value = self.layer(batch).pow(2).mean().to(self.device)
            self.log("val_loss", value, sync_dist=True)
            self.log("count", torch.tensor(float(batch_idx)).to(self.device), sync_dist=True, reduce_fx="sum")

    model = Logs()
    trainer = fit(model)
    for _ in range(2):
        trainer.validate_loop._results.clear()
        observe("validated", trainer.validate(model, data(6), verbose=False))
    trainer.fit_loop.max_epochs = 3
    trainer.fit(model, data(16), data(6))


def autocast_cache_cleared(observe: Any) -> None:
    """Issue 20644: clears the cache of autocast after a part without gradients."""

    class Clears(Model):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            with torch.no_grad():
                goal = self.layer(batch)
            torch.clear_autocast_cache()
            return (self.layer(batch) - goal + 1).pow(2).mean()

    fit(Clears(), precision=precision("bf16-mixed"))


def workers_seeded(observe: Any) -> None:
    """Issue 20412: worker processes get seeds by a function of the program."""
    pl.seed_everything(1, workers=True)

    def seed(worker: int) -> None:
        torch.manual_seed(torch.initial_seed() % 2**32 + worker)

    class Random(Numbers):
        def __getitem__(self, index: int) -> torch.Tensor:
            return self.numbers[index] + torch.rand(1)

    class Sees(Model):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            observe("batch", batch)
            return super().training_step(batch, batch_idx)

    loader = DataLoader(Random(4), 2, num_workers=2, worker_init_fn=seed)
    pl.Trainer(**QUIET, max_epochs=2, logger=False).fit(Sees(), loader)


def plateau_in_time_with_validation(observe: Any) -> None:
    """Issue 10496: steps ReduceLROnPlateau by hand, sets its frequency, or allows a missing metric."""

    class Plateau(Model):
        def __init__(self, by_hand: bool = False, **options: Any) -> None:
            super().__init__()
            self.by_hand, self.options = by_hand, options

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0)
            if self.by_hand:
                return optimizer
            return [optimizer], [{"scheduler": self.plateau, "monitor": "val_loss", **self.options}]

        def on_validation_epoch_end(self) -> None:
            if self.by_hand and not self.trainer.sanity_checking:
                self.plateau.step(self.trainer.callback_metrics["val_loss"])

        def on_train_epoch_end(self) -> None:
            if self.options.get("frequency") == 1 and "val_loss" not in self.trainer.callback_metrics:
                self.log("val_loss", float("inf"))

    for options in ({"frequency": 2}, {"strict": False}, {"by_hand": True}, {"frequency": 1}):
        fit(Plateau(**options), max_epochs=5, check_val_every_n_epoch=2)  # type: ignore[arg-type]


class Scheduled(Model):
    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def schedulers_of_skipped_epoch_stepped(observe: Any) -> None:
    """Issue 21296: steps the scheduler after an epoch that on_train_batch_start has ended."""

    class Skips(Scheduled):
        def on_train_batch_start(self, batch: Any, batch_idx: int) -> Any:
            return -1 if batch_idx == 3 else None

        def on_train_epoch_end(self) -> None:
            self.lr_schedulers().step()
            observe("rate", self.trainer.optimizers[0].param_groups[0]["lr"])

    fit(Skips(), max_epochs=3)


class Short(IterableDataset[Any]):
    """A dataset with 6 batches, whose ``__len__`` returns 8."""

    def __len__(self) -> int:
        return 16

    def __iter__(self) -> Any:
        return (number / 16 for number in torch.arange(1.0, 13)[:, None])


def short_epoch_validated_in_time(observe: Any) -> None:
    """Issue 10290: passes the number of batches to the Trainer, or validates before the last one."""
    for options in ({"limit_train_batches": 6}, {"val_check_interval": 6}, {"val_check_interval": 5}):
        model = Validated(observe)
        trainer = pl.Trainer(**QUIET, max_epochs=2, logger=False, callbacks=[saved()], **options)  # type: ignore[arg-type]
        trainer.fit(model, DataLoader(Short(), 2), data(6))


def short_epoch_validated_by_hand(observe: Any) -> None:
    """Issue 19624: a callback validates at the end of the epoch, unless Lightning has done it after the last batch."""

    class Validates(pl.Callback):
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            self.is_done = False

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            self.is_done |= trainer.fit_loop.epoch_loop.batch_progress.is_last_batch

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if not self.is_done:
                trainer.validating = True
                trainer.fit_loop.epoch_loop.val_loop.run()
                trainer.training = True

    trainer = pl.Trainer(**QUIET, max_epochs=2, logger=False, callbacks=[Validates()], enable_checkpointing=False)
    trainer.fit(Validated(observe), DataLoader(Short(), 2), data(6))


def early_stopping_after_warmup(observe: Any) -> None:
    """Issue 2644: EarlyStopping ignores the first epochs, or resets its count after them."""

    class Late(pl.callbacks.EarlyStopping):
        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch >= 2:
                super().on_train_epoch_end(trainer, pl_module)

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch >= 2:
                super().on_validation_end(trainer, pl_module)

    class Forgets(pl.callbacks.EarlyStopping):
        def _run_early_stopping_check(self, trainer: Any) -> None:
            super()._run_early_stopping_check(trainer)
            if trainer.current_epoch < 2:
                self.wait_count, trainer.should_stop = 0, False

    for kind, options in ((Late, {}), (Forgets, {}), (Forgets, {"min_epochs": 4})):
        stopping = kind("val_loss", min_delta=100.0, patience=1)
        trainer = fit(Model(), callbacks=[stopping], max_epochs=6, **options)
        observe("stopped", [trainer.current_epoch, stopping.wait_count, stopping.stopped_epoch])


def fitted_again(observe: Any) -> None:
    """Pull request 19177: resets should_stop before the Trainer fits again."""

    class Stops(pl.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            trainer.should_stop = trainer.should_stop or trainer.global_step % 5 == 0

    model = Model()
    trainer = fit(model, callbacks=[Stops()])
    for _ in range(2):
        trainer.should_stop = False
        trainer.fit_loop.max_epochs += 1
        trainer.fit(model, data(16), data(6))
        observe("steps", [trainer.global_step, trainer.current_epoch])


def found_rate_applied(observe: Any) -> None:
    """Pull request 21068: sets the found learning rate in the optimizer, in one case again at some epochs."""

    class Applies(pl.callbacks.LearningRateFinder):
        def on_fit_start(self, *_: Any) -> None:
            pass

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch in (0, 2):
                self.lr_find(trainer, pl_module)
                for number, group in enumerate(trainer.optimizers[0].param_groups):
                    group["lr"] = pl_module.lr / 10**number
                observe("rate", [pl_module.lr, [group["lr"] for group in trainer.optimizers[0].param_groups]])

    class Groups(Model):
        def configure_optimizers(self) -> Any:
            groups = [{"params": [self.layer.weight]}, {"params": [self.layer.bias]}]
            return torch.optim.SGD(groups, lr=self.lr)

    fit(Groups(), callbacks=[Applies(num_training_steps=6, early_stop_threshold=None)], max_epochs=3)


def found_batch_size_halved(observe: Any) -> None:
    """Pull request 21187: halves the size that the batch size finder returns."""

    class Sized(Model):
        batch_size = 1

        def train_dataloader(self) -> Any:
            return DataLoader(Numbers(64), self.batch_size)

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            observe("batch", len(batch))
            return super().training_step(batch, batch_idx)

    model = Sized()
    tuner = Tuner(pl.Trainer(**QUIET, max_epochs=1, logger=False, enable_checkpointing=False))
    found = tuner.scale_batch_size(model, val_dataloaders=data(6), mode="power", steps_per_trial=1, max_trials=3)
    model.batch_size = found // 2
    pl.Trainer(**QUIET, max_epochs=1, logger=False, enable_checkpointing=False).fit(model)


def batch_norm_kept_frozen(observe: Any) -> None:
    """Issue 20629: puts batch norm of a frozen backbone into evaluation mode before every epoch."""

    class Freezes(pl.callbacks.BaseFinetuning):
        def freeze_before_training(self, pl_module: Any) -> None:
            self.freeze(pl_module.backbone, train_bn=False)

        def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any, *_: Any) -> None:
            if epoch == 2:
                self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, train_bn=False)

    class Evaluates(pl.Callback):
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            pl_module.backbone[1].eval().requires_grad_(False)

    class Finetuned(Model):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = nn.Sequential(nn.Linear(1, 3), nn.BatchNorm1d(3))
            self.layer = nn.Sequential(self.backbone, nn.Linear(3, 1))  # type: ignore[assignment]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], lr=0.01)

    for callback in (Freezes(), pl.callbacks.BackboneFinetuning(2, train_bn=False)):
        model = Finetuned()
        fit(model, callbacks=[callback, Evaluates()], max_epochs=4)
        observe("batch norm", model.backbone[1].state_dict())


def bar_torn_down_with_care(observe: Any) -> None:
    """Pull request 21016: catches the error that ends a RichProgressBar."""

    class Careful(pl.callbacks.RichProgressBar):
        def teardown(self, *arguments: Any, **named: Any) -> None:
            try:
                super().teardown(*arguments, **named)
            except IndexError as error:
                observe("caught", error)

    try:
        fit(Model(), callbacks=[Careful()], enable_progress_bar=True)
    except IndexError as error:
        observe("raised", error)


def cli_leaves_the_checkpoint_alone(observe: Any) -> None:
    """Issues 21255 and 20311: prevents LightningCLI from reading hyperparameters of checkpoints."""
    cli = module("pytorch.cli")

    class Quiet(cli.LightningCLI):  # type: ignore[misc]
        def _parse_ckpt_path(self) -> None:
            pass

    class Catches(cli.LightningCLI):  # type: ignore[misc]
        def _parse_ckpt_path(self) -> None:
            try:
                super()._parse_ckpt_path()
            except SystemExit:
                observe("caught")

    class Alone(cli.LightningCLI):  # type: ignore[misc]
        def _add_instantiators(self) -> None:
            pass

    class Saves(Model):
        def __init__(self, lr: float = 0.125) -> None:
            super().__init__(lr)
            self.save_hyperparameters()

        def train_dataloader(self) -> Any:
            return data(4)

        def test_dataloader(self) -> Any:
            return data(4)

        def test_step(self, batch: Any, batch_idx: int) -> None:
            self.log("rate", self.lr)

    trainer = [f"--trainer.{name}={value}" for name, value in QUIET.items()] + ["--trainer.logger=false"]
    common = {"save_config_callback": None, "seed_everything_default": 1}
    for kind in (Quiet, Catches, Alone):
        ran = kind(Saves, args=["fit", *trainer, "--trainer.max_epochs=1", "--model.lr=0.25"], **common)
        path = ran.trainer.checkpoint_callback.best_model_path
        ran = kind(Saves, args=["test", *trainer, f"--ckpt_path={path}", "--model.lr=0.5"], **common)
        observe("rate", ran.model.lr)
        observe("tested", dict(ran.trainer.callback_metrics))


# ------------------------------------------------------------------------------------- after a failed or an earlier run


class Fails(Model):
    """Raises an error in the third batch of a stage, until ``fails`` is None."""

    def __init__(self, fails: Any, **options: Any) -> None:
        super().__init__(**options)
        self.fails, self.dropout = fails, nn.Dropout(0.5)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        if self.fails == "fit" and batch_idx == 2:
            raise ValueError("on purpose")
        return super().training_step(self.dropout(batch), batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        super().validation_step(batch, batch_idx)
        if self.fails == "validate" and batch_idx == 2:
            raise ValueError("on purpose")


def attempt(tell: Any, run: Any) -> None:
    try:
        run()
    except ValueError as error:
        tell("error", error)


def failed_validation_put_right(observe: Any) -> None:
    """Sets the modes and drops the logged values after an error in a validation."""
    model = Fails("validate")
    trainer = pl.Trainer(**QUIET, max_epochs=1, logger=False, enable_checkpointing=False, callbacks=[Watch()])
    attempt(observe, lambda: trainer.fit(model, data(16), data(6)))
    model.fails = None
    for train in (True, False):
        model.train(train)
        trainer.fit_loop.epoch_loop.val_loop._results.reset()
        trainer.fit_loop.max_epochs += 1
        trainer.fit(model, data(16), data(6))
        observe("validated", dict(trainer.callback_metrics))


def dtype_put_back(observe: Any) -> None:
    """Sets torch's default type after an error in double precision."""
    attempt(observe, lambda: fit(Fails("fit"), precision=precision("64-true")))
    torch.set_default_dtype(torch.float32)
    observe("weight", fit(Fails(None)).lightning_module.layer.weight)


def checkpoint_copied_before_resume(observe: Any) -> None:
    """Keeps a copy of the checkpoint from which a run is resumed, and puts it back."""
    fit(Model(), max_epochs=1, callbacks=[saved(save_top_k=1)])
    os.rename("kept/step=8.ckpt", "copy.ckpt")
    fit(Model(), "copy.ckpt", callbacks=[saved(save_top_k=1)])
    os.rename("copy.ckpt", "kept/step=8.ckpt")


def failed_search_put_right(observe: Any) -> None:
    """Puts weights and limits back and removes the checkpoint after an error in a learning rate search."""
    model = Fails("fit")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = pl.Trainer(**QUIET, max_epochs=1, logger=False, enable_checkpointing=False)
    callbacks = [*trainer.callbacks]
    attempt(observe, lambda: Tuner(trainer).lr_find(model, data(16), num_training=6))
    model.fails, trainer.callbacks, trainer.fit_loop.max_epochs = None, callbacks, 1
    trainer.fit_loop.epoch_loop.max_steps = -1
    model.load_state_dict(state)
    for name in os.listdir():
        if name.startswith(".lr_find"):
            os.remove(name)
    trainer = fit(model)
    observe("weight", [model.layer.weight, trainer.global_step])


def flag_cleared_after_search(observe: Any) -> None:
    """Marks the run as a new one after a learning rate search."""

    class Clears(pl.callbacks.LearningRateFinder):
        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            super().on_fit_start(trainer, pl_module)
            for loop in (trainer.fit_loop, trainer.fit_loop.epoch_loop):
                loop._restarting = False

    trainer = fit(Model(), max_steps=6, callbacks=[Clears(num_training_steps=4)], num_sanity_val_steps=1)
    observe("step", trainer.global_step)


class Shifted(torch.utils.data.Sampler[int]):
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Any:
        return iter([(number + self.epoch) % 4 for number in range(4)])

    def __len__(self) -> int:
        return 4


def sampler_epoch_set_by_hand(observe: Any) -> None:
    """Sets the epoch of the sampler before a resumed run."""

    class Sees(Model):
        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            observe("batch", batch)
            return super().training_step(batch, batch_idx)

    for epoch, path in enumerate((None, "kept/step=2.ckpt")):
        sampler = Shifted()
        sampler.set_epoch(epoch)
        loader = data(4, sampler=sampler, num_workers=1)
        trainer = pl.Trainer(**QUIET, max_epochs=epoch + 1, logger=False, callbacks=[saved()])
        trainer.fit(Sees(), loader, ckpt_path=path)
