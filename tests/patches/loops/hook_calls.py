"""The Trainer's work around each hook. Counts calls of torch's slow ``__setattr__`` with the hook's name. Cases:
``plain``; ``own`` (the model overrides ``__setattr__``), ``wrapped`` (torch's function is wrapped), ``descriptor`` (the
class has a property of that name), ``profiler``, ``debug``, ``raises``, ``hooks`` (a hook is replaced, and callbacks
come and go, between two steps), ``idle`` (parts of the idle profiler are replaced), ``ddp`` (two ranks)."""

from _expect import bug, fixed, same, same_calls

SAME = ("events", "weights", "metrics")


def _has_events(number, *starts):
    """Return a check that more than this number of events begin with each of the texts."""
    return lambda seen: all(sum(event.startswith(start) for event in seen["events"]) > number for start in starts)


def _is_named_slowly(ranks):
    return [{**rank, "counted": rank["counted"] > 10} for rank in ranks]


def uncounted(observations):
    return [{**rank, "counted": None} for rank in observations]


EXPECT = [
    bug(
        "plain",
        stock=lambda seen: seen["counted"] > 40,
        compare=_is_named_slowly,
        compare_like=lambda ranks: [{**rank, "counted": False} for rank in ranks],
    ),
    same(
        "debug",
        "debug message has the line of stock",
        _has_events(0, "call.py _call_callback_hooks "),
        compare=SAME,
        toggle="hook-calls,compiled-log",
        on=("2.1.0", "2.6.6"),
    ),
    same(
        ["own", "wrapped", "descriptor"],
        "custom setattr sees each attribute",
        _has_events(40, "set "),
        compare=SAME,
        toggle="hook-calls,compiled-log",
    ),
    same(
        "idle",
        "custom profiler is called",
        _has_events(10, "start [", "stop [", "profile ["),
        compare=SAME,
        toggle="hook-calls,compiled-log",
        on=("2.0.0", "2.6.6"),
    ),
    same("ddp", "hooks on two ranks see the state of stock", compare=SAME, toggle="hook-calls,compiled-log"),
    fixed(
        ["profiler", "raises", "hooks"],
        "hooks cost fewer calls",
        stock=lambda seen: seen["counted"] > 40,
        patched=lambda seen: seen["counted"] < 10,
        toggle="hook-calls,compiled-log",
        on=("2.1.0", "2.6.6"),
    ),
    same(
        ["profiler", "raises", "hooks"],
        "each hook sees the state of stock",
        compare=uncounted,
        toggle="hook-calls,compiled-log",
        on=("2.1.0", "2.6.6"),
    ),
    same_calls("callers", "hook that inspects its caller sees the names of stock"),
]

import contextlib
import logging
import sys

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader, TensorDataset

events, named = [], []
START = scenario.pl.profilers.PassThroughProfiler.start


class Watch(scenario.pl.Callback):
    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name == "on_train_batch_start" or not name.startswith("on_") or not callable(found):
            return found

        def told(trainer, module, *args, **kwargs):
            events.append(f"callback {name} {module._current_fx_name}")
            return found(trainer, module, *args, **kwargs)

        return told

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        events.append(f"step {batch_idx} {module._current_fx_name}")
        if scenario.CASE == "hooks" and batch_idx == 1:
            module.on_train_batch_end = lambda *args: events.append(f"replaced {module._current_fx_name}")
            trainer.callbacks.append(Late())
        if scenario.CASE == "idle":
            idle = type(trainer.profiler)
            if batch_idx == 0:
                idle.start = lambda self, action: events.append(f"start {action}")
            elif batch_idx == 1:
                idle.start = START
                trainer.profiler.stop = lambda action: events.append(f"stop {action}")
            elif batch_idx == 2:
                del trainer.profiler.stop
                trainer.profiler = Told()


class Late(scenario.pl.Callback):
    def on_train_batch_end(self, trainer, module, *args):
        events.append(f"late {module._current_fx_name}")


class Told(scenario.pl.profilers.PassThroughProfiler):
    @contextlib.contextmanager
    def profile(self, action_name):
        events.append(f"profile {action_name} {trainer.lightning_module._current_fx_name}")
        yield


class Model(Linear):
    def training_step(self, batch, batch_idx):
        self.log("loss", self.layer(batch[0]).mean())
        events.append(f"training_step {self._current_fx_name}")
        if scenario.CASE == "raises" and batch_idx == 1:
            raise ValueError("on purpose")
        return self.layer(batch[0]).mean()

    def validation_step(self, batch, batch_idx):
        events.append(f"validation_step {self._current_fx_name}")
        self.log("value", self.layer(batch[0]).mean())

    def on_before_optimizer_step(self, optimizer):
        events.append(f"on_before_optimizer_step {self._current_fx_name}")

    def configure_optimizers(self):
        events.append(f"configure_optimizers {self._current_fx_name}")
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Own(Model):
    def __setattr__(self, name, value):
        if name == "_current_fx_name":
            events.append(f"set {value}")
        super().__setattr__(name, value)


class Described(Model):
    @property
    def _current_fx_name(self):
        return self.__dict__["described"]

    @_current_fx_name.setter
    def _current_fx_name(self, value):
        events.append(f"set {value}")
        self.__dict__["described"] = value


def profile(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "__setattr__" and frame.f_locals.get("name") == "_current_fx_name":
        named.append(frame.f_locals["value"])


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    case = scenario.CASE
    model = {"own": Own, "descriptor": Described}.get(case, Model)()
    if case == "wrapped":
        slow = torch.nn.Module.__setattr__

        def wrapper(self, name, value):
            if name == "_current_fx_name":
                events.append(f"set {value}")
            slow(self, name, value)

        torch.nn.Module.__setattr__ = wrapper
    if case == "debug":

        class Keep(logging.Handler):
            def emit(self, record):
                events.append(f"{record.filename} {record.funcName} {record.getMessage()}")

        log = logging.getLogger(f"{scenario.pl.__name__}.trainer.call")
        log.addHandler(Keep())
        log.setLevel(logging.DEBUG)
    loader = DataLoader(TensorDataset(torch.arange(8.0).reshape(4, 2)), batch_size=1)
    options = {"profiler": "simple"} if case == "profiler" else {}
    if case == "ddp":
        options.update(strategy="ddp", devices=2)
    trainer = scenario.trainer(max_epochs=2, callbacks=[Watch()], **options)
    sys.setprofile(profile)
    try:
        trainer.fit(model, loader, loader)
    except ValueError as error:
        events.append(f"{error} {model._current_fx_name}")
    sys.setprofile(None)
    if case == "profiler":
        actions = trainer.profiler.recorded_durations
        events += [f"{name} {len(actions[name])}" for name in sorted(actions)]
    scenario.observe(
        events=events, counted=len(named), weights=model.layer.weight, metrics=dict(trainer.callback_metrics)
    )
