"""Where a finder finds what it tunes."""

from __future__ import annotations

from typing import Any, Iterator


def places(trainer: Any, names: tuple[str, ...]) -> Iterator[tuple[Any, str, Any]]:
    """Who keeps what a finder tunes, its name and its value: the model, the datamodule, their hyperparameters.

    The finder takes the first of the names that anybody has. What is a property is left out: its getter would have to
    be asked once more.
    """
    for name in names:
        is_there = False
        for module in (trainer.lightning_module, trainer.datamodule):
            for holder in (module, getattr(module, "__dict__", {}).get("_hparams")):
                where: list[Any] = [holder] if isinstance(holder, dict) else [getattr(holder, "__dict__", {})]
                where += [vars(kind) for kind in type(holder).__mro__]
                values = [kept[name] for kept in where if name in kept]
                is_there |= bool(values)
                if values and not hasattr(type(values[0]), "__get__"):
                    yield holder, name, values[0]
        if is_there:
            return


def put(holder: Any, name: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)
