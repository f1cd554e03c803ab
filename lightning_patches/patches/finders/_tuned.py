"""Find the attributes that hold the value that a finder tunes."""

from __future__ import annotations

from typing import Any, Iterator


def places(trainer: Any, names: tuple[str, ...]) -> Iterator[tuple[Any, str, Any]]:
    """Yield owner, name and value of the tuned attribute: in the model, the datamodule and their hyperparameters.

    The finder uses the first name that an owner has. Properties are skipped, since reading one would call the program's
    getter.
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
