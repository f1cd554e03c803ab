"""What a bad patch could do, for the tests of the trial: each of these must be found, save the innocent one."""

from __future__ import annotations

import time
import warnings
from functools import wraps
from typing import Any, Callable

from tests.healthy.watch import pl, torch


def _around(owner: type, name: str, before: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def replacement(self: Any, *arguments: Any, **named: Any) -> Any:
        before(self, *arguments, **named)
        return original(self, *arguments, **named)

    setattr(owner, name, replacement)


def innocent() -> None:
    _around(pl.Trainer, "fit", lambda *_, **__: None)


def draws_a_random_number() -> None:
    _around(pl.Trainer, "fit", lambda *_, **__: torch.rand(1))


def warns() -> None:
    _around(pl.Trainer, "fit", lambda *_, **__: warnings.warn("a remark", stacklevel=2))


def hangs() -> None:
    _around(pl.Trainer, "fit", lambda *_, **__: time.sleep(3600))


def last_bit() -> None:
    original = pl.LightningModule.log

    @wraps(original)
    def log(self: Any, name: str, value: Any, *arguments: Any, **named: Any) -> None:
        original(self, name, value * (1 + 2**-23), *arguments, **named)

    pl.LightningModule.log = log


def other_error() -> None:
    def fail(trainer: Any, *_: Any, **__: Any) -> None:
        raise ValueError("no")

    _around(pl.Trainer, "fit", fail)


def calls_a_hook_twice() -> None:
    original = pl.Trainer.fit

    @wraps(original)
    def fit(self: Any, model: Any, *arguments: Any, **named: Any) -> Any:
        for callback in self.callbacks:
            callback.on_fit_start(self, model)
        return original(self, model, *arguments, **named)

    pl.Trainer.fit = fit


def loses_a_checkpoint() -> None:
    checkpoint = pl.callbacks.ModelCheckpoint
    original = checkpoint._save_checkpoint

    @wraps(original)
    def save(self: Any, trainer: Any, filepath: str) -> None:
        if trainer.global_step != 4:
            original(self, trainer, filepath)

    checkpoint._save_checkpoint = save


def other_weights_in_the_checkpoint() -> None:
    original = pl.Trainer.save_checkpoint

    @wraps(original)
    def save(self: Any, *arguments: Any, **named: Any) -> None:
        before = [p.clone() for p in self.lightning_module.parameters()]
        with torch.no_grad():
            for p in self.lightning_module.parameters():
                p.mul_(2)
        original(self, *arguments, **named)
        with torch.no_grad():
            for p, old in zip(self.lightning_module.parameters(), before):
                p.copy_(old)

    pl.Trainer.save_checkpoint = save
