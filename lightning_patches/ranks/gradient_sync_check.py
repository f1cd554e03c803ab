"""A callback that tells when ranks no longer train the same model.

Under data parallelism all ranks hold the same parameters, and step with the same gradients. When something goes past
DDP (a submodule that is called by itself, a parameter that was unfrozen later, an update under ``no_grad`` on one rank)
nothing says so, and each rank trains a model of its own. :class:`GradientSyncCheck` compares them now and then.
"""

from __future__ import annotations

import hashlib
import sys
import weakref
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Iterable, List, Optional, Tuple, Union

from lightning_patches import notices
from lightning_patches.errors import LightningPatchesError
from lightning_patches.ranks._checksums import NONE_SUM, UNCOMPARED, checksum
from lightning_patches.ranks._parameters import (
    buffers,
    device_of,
    forward_of,
    group_of,
    holds_shards,
    is_sharded,
    named_parameters,
    parameters_of,
    roots,
    state_of,
    unwrapped,
    world_size,
)

NAMED_AT_MOST = 8
"""Parameters that a message lists."""
_CALLBACKS = ("lightning.pytorch.callbacks.callback", "pytorch_lightning.callbacks.callback")
_SHARDING = ("FSDPStrategy", "XLAFSDPStrategy", "DeepSpeedStrategy", "ModelParallelStrategy")
_NAMELESS = "parameter "  # how the label of a parameter begins that only its optimizer is known of
_COMPARABLE, _SHARDED, _NOTHING = 0, 1, 2
_REASONS = {
    _SHARDED: "the module is sharded: each rank has its own part of the parameters",
    _NOTHING: "there are no parameters that every rank has as a whole",
}


class GradientSyncError(LightningPatchesError, RuntimeError):
    """Ranks train different models, and ``action="raise"`` was asked for. Raised in every rank.

    Args:
        message: what differs.
        differences: the same as data.
    """

    def __init__(self, message: str, differences: tuple[Difference, ...] = ()) -> None:
        super().__init__(message)
        self.differences = differences


@dataclass(frozen=True)
class Difference:
    """A tensor that is not the same on all ranks.

    Args:
        kind: ``"gradient"``, ``"parameter"``, ``"buffer"`` or ``"optimizer state"``; ``"model"`` if the ranks can't be
            compared, since they have different parameters, in number, name or shape, or different options.
        name: the parameter's name in the module; of a state ``"exp_avg of weight"``; "" for ``"model"``.
        step: the check that found it first: the number of optimizer steps before it (Trainer), or up to it (Fabric).
        equal_at: the last check at which it was the same everywhere, ``None`` if there was none.
        ranks: ranks that agree with each other, ``((0, 1), (2,))``.
        missing: ranks on which the gradient is ``None``.
    """

    kind: str
    name: str
    step: int
    equal_at: Optional[int]
    ranks: tuple[tuple[int, ...], ...]
    missing: tuple[int, ...] = ()


class Comparison(Tuple[Difference, ...]):
    """What :meth:`GradientSyncCheck.check` found and had not found before.

    Args:
        differences: it.
        outcome: ``"equal"``; ``"different"``, also if all that differs was found at an earlier check; or ``"not
            comparable"``: there is one rank only, or no rank has a parameter as a whole.
    """

    outcome: str

    def __new__(cls, differences: Iterable[Difference], outcome: str) -> Comparison:
        made = super().__new__(cls, tuple(differences))
        made.outcome = outcome
        return made


Action = Union[str, Callable[[Tuple[Difference, ...]], None]]


Form = List[Tuple[str, Tuple[int, ...]]]


class GradientSyncCheck:
    """Compare gradients and parameters across ranks, by checksum, in two small collectives every so many steps.

    The first has the same form in every rank and settles whether the second takes place: ranks that hold different
    parameters are told so, and do not wait for each other.

    For ``Trainer(callbacks=[GradientSyncCheck()])`` and ``Fabric(callbacks=[GradientSyncCheck()])``, of either
    namespace. Make it after Lightning is imported: it is a ``Callback`` of each Lightning that is there.

    Gradients are looked at right before (Trainer) or after (Fabric) an optimizer steps, and only those of that
    optimizer: within an accumulation window they differ, and may. Parameters that are frozen are compared at the first
    check only. Buffers are not compared unless asked for: BatchNorm's differ by design. NaN equals NaN. With Fabric,
    the hooks that this needs exist since 2.0.5; in older releases, and in a loop without either, call :meth:`check`
    after a step.

    Strategies that give each rank its own part of the parameters (FSDP, DeepSpeed, ModelParallelStrategy) leave nothing
    to compare: the check says so once and stays off. Of a module that is sharded in part (DTensor), the rest is
    compared. All ranks must take the same optimizer steps, as DDP asks of them, too.

    Args:
        every_n_steps: how many steps of an optimizer lie between two checks. The first step is always checked. One
            check costs 0.7 of a step in ``scripts/benchmark gradient_sync_check`` (10 million parameters, two ranks on
            a busy CPU), so every 100 steps 0.7 % of the training.
        action: ``"warn"`` (on rank zero, when something differs that did not before), ``"raise"``
            (:class:`GradientSyncError` in every rank), or a function that every rank calls with what is new.
        gradients: compare gradients.
        parameters: compare parameters.
        buffers: compare buffers.
        optimizer_state: compare what the optimizer keeps for its parameters, such as Adam's averages. Not for one that
            gives each rank its part (``ZeroRedundancyOptimizer``).

    Raises:
        ValueError: ``every_n_steps`` is below 1, ``action`` is unknown, or nothing is to be compared.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GradientSyncCheck:
        made: GradientSyncCheck = object.__new__(_with_callbacks(cls, _loaded_callbacks()))  # type: ignore[arg-type]
        return made

    def __init__(
        self,
        every_n_steps: int = 100,
        action: Action = "warn",
        gradients: bool = True,
        parameters: bool = True,
        buffers: bool = False,
        optimizer_state: bool = False,
    ) -> None:
        if isinstance(every_n_steps, bool) or not isinstance(every_n_steps, int) or every_n_steps < 1:
            raise ValueError(f"every_n_steps is a number of optimizer steps, 1 or more, not {every_n_steps!r}")
        if action not in ("warn", "raise") and not callable(action):
            raise ValueError(f'action is "warn", "raise" or a function, not {action!r}')
        if not (gradients or parameters or buffers or optimizer_state):
            raise ValueError("gradients, parameters, buffers and optimizer_state are all False: nothing to compare")
        self.every_n_steps = every_n_steps
        self.action = action
        self.gradients = gradients
        self.parameters = parameters
        self.buffers = buffers
        self.optimizer_state = optimizer_state
        self.differences: tuple[Difference, ...] = ()
        self._modules: list[weakref.ref[Any]] = []
        self._names: dict[str, str] = {}
        self._reset()

    def _reset(self) -> None:
        self.differences = ()
        self._steps: dict[int, int] = {}  # steps of each optimizer, by the order in which they first stepped
        self._forget_optimizers()
        self._equal_at: dict[tuple[str, str], int] = {}
        self._known: set[tuple[str, str]] = set()
        self._frozen_compared = False
        self._off = False

    def _forget_optimizers(self) -> None:
        # Not by id(): when an id is used again depends on the garbage collector, and so differs between ranks.
        self._order: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._optimizers = 0

    def __reduce__(self) -> Any:
        # The class that was made for the Lightnings of this process is made again where it is unpickled.
        state = {name: value for name, value in vars(self).items() if name not in ("_modules", "_order", "_optimizers")}
        base = next(cls for cls in type(self).__mro__ if "_made_for" not in vars(cls))
        return _remake, (base, vars(type(self)).get("_made_for", ()), state)

    # ---------------------------------------------------------------- hooks of Trainer and Fabric

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Trainer: a fit begins."""
        self._reset()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Trainer: gradients are complete, and not clipped yet."""
        if self._is_due(optimizer) and not self._refuses(trainer.strategy):
            wrapped = getattr(trainer, "model", pl_module)
            self._compare(
                named_parameters(pl_module), optimizer, trainer.global_step, [wrapped], group_of(wrapped), [pl_module]
            )

    def on_after_setup(self, fabric: Any, module: Any) -> None:
        """Fabric: a module was set up."""
        self.watch(module)

    def on_after_optimizer_step(self, strategy: Any, optimizer: Any) -> None:
        """Fabric: an optimizer has stepped."""
        if self._is_due(optimizer) and not self._refuses(strategy):
            modules = [module for known in self._modules if (module := known()) is not None]
            named, step = self._watched(modules, optimizer), self._steps[self._order[optimizer]]
            # The strategy's group: which modules are still alive is up to each rank's garbage collector.
            group = getattr(strategy, "_ddp_kwargs", {}).get("process_group")
            wrapped = [forward_of(module) for module in modules]
            self._compare(named, optimizer, step, wrapped, group, modules, self._nameless(optimizer))

    # ---------------------------------------------------------------- by hand

    def watch(self, module: Any) -> Any:
        """Compare this module's parameters too, and call them by its names. Returns the module.

        Fabric's ``setup`` does it by itself; after ``setup_module`` and ``setup_optimizers`` only what the optimizer
        has is compared.
        """
        if all(known() is not module for known in self._modules):
            self._modules.append(weakref.ref(module))
        return module

    def check(self, module: Any, optimizer: Any = None, step: int = 0) -> Comparison:
        """Compare now, whatever ``every_n_steps`` says. A collective: every rank has to call it.

        Args:
            module: the module whose parameters are compared.
            optimizer: compare the gradients of its parameters only; of all parameters if ``None``.
            step: the number to report.

        Returns:
            What differs and did not at an earlier check; one of kind ``"model"`` if the ranks' models are of different
            form. Its ``outcome`` is ``"equal"``, ``"different"`` or ``"not comparable"``.

        Raises:
            GradientSyncError: with ``action="raise"``.
        """
        if world_size() < 2:
            return Comparison((), "not comparable")
        wrapped = forward_of(module)
        return self._compare(named_parameters(module), optimizer, step, [wrapped], group_of(wrapped), [module])

    # ---------------------------------------------------------------- the comparison

    def _is_due(self, optimizer: Any) -> bool:
        if self._off or world_size() < 2:
            return False
        key = self._order.get(optimizer)
        if key is None:
            key = self._order[optimizer] = self._optimizers
            self._optimizers += 1
        count = self._steps[key] = self._steps.get(key, 0) + 1
        return (count - 1) % self.every_n_steps == 0

    def _refuses(self, strategy: Any) -> bool:
        for cls in type(strategy).__mro__:
            if cls.__name__ in _SHARDING:
                self._turn_off(f"{type(strategy).__name__} gives each rank its own part of the parameters")
        return self._off

    def _turn_off(self, why: str) -> None:
        self._off = True
        notices.warn_once(f"gradient-sync-check:off:{why}", f"GradientSyncCheck compares nothing: {why}.", stacklevel=5)

    def _watched(self, modules: list[Any], optimizer: Any) -> list[tuple[str, Any]]:
        """Parameters of the modules, and those of the optimizer, which have no name yet; no label twice."""
        named: dict[int, tuple[str, Any]] = {}
        for number, module in enumerate(modules, 1):
            for name, parameter in named_parameters(module):
                label = name if number == 1 else f"{name} (module {number})"
                named.setdefault(id(parameter), (label, parameter))
        for label, parameter in self._nameless(optimizer):
            named.setdefault(id(parameter), (label, parameter))
        return list(named.values())

    def _nameless(self, optimizer: Any) -> list[tuple[str, Any]]:
        """The parameters of an optimizer that has stepped, called by their order in it."""
        owner = f"{type(optimizer).__name__} {self._order[optimizer] + 1}"
        return [(f"{_NAMELESS}{number} of {owner}", p) for number, p in enumerate(parameters_of(optimizer))]

    def _compare(
        self,
        named: list[tuple[str, Any]],
        optimizer: Any,
        step: int,
        wrapped: list[Any],
        group: Any,
        modules: list[Any],
        least: Optional[list[tuple[str, Any]]] = None,
    ) -> Comparison:
        """Compare, and tell what is new.

        Args:
            least: what is compared where ``named`` is not the same in all ranks, since it depends on which modules a
                rank's garbage collector has left; ``None`` if that means that the ranks' models differ.
        """
        ignored = {name for m in wrapped for name in getattr(unwrapped(m), "_ddp_params_and_buffers_to_ignore", ())}
        device = device_of(named, group)
        named = [(name, p) for name, p in named if name not in ignored and not is_sharded(p)]
        least = [(name, p) for name, p in least or [] if not is_sharded(p)] if least is not None else named
        tensors = self._tensors(named, optimizer)
        if self.buffers:
            tensors += [("buffer", name, b) for m in modules for name, b in buffers(m) if name not in ignored]
        forms = [_form(named, tensors), _form(least, self._tensors(least, optimizer))]
        reason = _SHARDED if holds_shards(wrapped) else _COMPARABLE if named else _NOTHING
        worst, (all_alike, alike) = self._agree(reason, forms, group, device)
        if worst != _COMPARABLE:
            self._turn_off(_REASONS[worst])
            return Comparison((), "not comparable")
        if len(all_alike) > 1 and len(alike) == 1:
            named, tensors = least, self._tensors(least, optimizer)
            notices.warn_once(
                "gradient-sync-check:lists",
                "GradientSyncCheck compares the parameters of the optimizer alone: those of the modules differ between "
                "ranks in number, name or shape.",
                stacklevel=5,
            )
        if len(alike) > 1:
            return self._found({("model", ""): Difference("model", "", step, self._equal_at.get(("model", "")), alike)})
        self._equal_at["model", ""] = step
        self._frozen_compared = True
        found = self._differing(tensors, named, group, device, step)
        self._equal_at.update(
            {(kind, label): step for kind, label, t in tensors if t is not UNCOMPARED and (kind, label) not in found}
        )
        return self._found(found)

    def _tensors(self, named: list[tuple[str, Any]], optimizer: Any) -> list[tuple[str, str, Any]]:
        """What is compared: kind, label, tensor. As long in every rank as the ranks' models are of the same form."""
        stepped = None if optimizer is None else {id(parameter) for parameter in parameters_of(optimizer)}
        tensors: list[tuple[str, str, Any]] = []
        for name, parameter in named:
            if self.parameters:
                wanted = parameter.requires_grad or not self._frozen_compared
                tensors.append(("parameter", name, parameter.detach() if wanted else UNCOMPARED))
            if self.gradients:
                wanted = parameter.requires_grad and (stepped is None or id(parameter) in stepped)
                tensors.append(("gradient", name, parameter.grad if wanted else UNCOMPARED))
            if self.optimizer_state and optimizer is not None:
                tensors += [("optimizer state", f"{key} of {name}", t) for key, t in state_of(optimizer, parameter)]
        return tensors

    def _found(self, found: dict[tuple[str, str], Difference]) -> Comparison:
        """What is new of it; told."""
        # By label, which is the same in every rank; names are each rank's own finding.
        new = tuple(difference for key, difference in found.items() if key not in self._known)
        self._known.update(found)
        self.differences += new
        if new:
            self._tell(new)
        return Comparison(new, "different" if found else "equal")

    def _agree(
        self, reason: int, forms: list[Form], group: Any, device: Any
    ) -> tuple[int, list[tuple[tuple[int, ...], ...]]]:
        """The gravest reason why some rank can't compare, and for each form which ranks have the same one.

        A collective of one form, whatever a rank has: nothing that one rank alone knows may keep it from this one, or
        take it into the next.
        """
        import torch

        options = (self.gradients, self.parameters, self.buffers, self.optimizer_state, self._frozen_compared)
        digests = [hashlib.blake2b(repr((options, form)).encode(), digest_size=7).digest() for form in forms]
        own = [reason, *(int.from_bytes(digest, "big") for digest in digests)]
        numbers = torch.tensor(own, dtype=torch.int64, device=device)
        gathered = [torch.empty_like(numbers) for _ in range(torch.distributed.get_world_size(group))]
        torch.distributed.all_gather(gathered, numbers, group=group)
        reasons, *by_form = zip(*(one.tolist() for one in gathered))
        alike = []
        for of_ranks in by_form:
            same: dict[int, list[int]] = {}
            for rank, of_rank in enumerate(of_ranks):
                same.setdefault(of_rank, []).append(rank)
            alike.append(tuple(sorted(map(tuple, same.values()))))
        return max(reasons), alike

    def _differing(
        self, tensors: list[tuple[str, str, Any]], named: list[tuple[str, Any]], group: Any, device: Any, step: int
    ) -> dict[tuple[str, str], Difference]:
        """A collective for all tensors: those whose checksum is not the same in every rank are looked at closely."""
        import torch

        with torch.no_grad():
            sums = torch.stack([checksum(tensor, device) for _, _, tensor in tensors])
            extremes = torch.cat([sums, -sums])
            torch.distributed.all_reduce(extremes, op=torch.distributed.ReduceOp.MAX, group=group)
            suspects = (extremes[: len(sums)] != -extremes[len(sums) :]).nonzero().flatten().tolist()
            return self._look_closely([tensors[i] for i in suspects], named, group, device, step) if suspects else {}

    def _look_closely(
        self, suspects: list[tuple[str, str, Any]], named: list[tuple[str, Any]], group: Any, device: Any, step: int
    ) -> dict[tuple[str, str], Difference]:
        """One more collective, for what seems to differ: which ranks agree. NaN is NaN here, whatever its bits."""
        import torch

        sums = torch.stack([checksum(tensor, device, exact=False) for _, _, tensor in suspects])
        gathered = [torch.empty_like(sums) for _ in range(torch.distributed.get_world_size(group))]
        torch.distributed.all_gather(gathered, sums, group=group)
        by_rank = [of_rank.tolist() for of_rank in gathered]
        self._find_names([(name, parameter) for name, parameter in named if name.startswith(_NAMELESS)])
        found = {}
        for index, (kind, label, _) in enumerate(suspects):
            ranks: dict[int, list[int]] = {}
            for rank, values in enumerate(by_rank):
                ranks.setdefault(values[index], []).append(rank)
            if len(ranks) > 1:
                name, key = self._names.get(label, label), (kind, label)
                groups = tuple(sorted(tuple(group) for group in ranks.values()))
                missing = tuple(ranks.get(NONE_SUM, ()))
                found[key] = Difference(kind, name, step, self._equal_at.get(key), groups, missing)
        return found

    def _find_names(self, nameless: list[tuple[str, Any]]) -> None:
        """Look for the modules that these parameters belong to: only when there is something to name."""
        if not nameless:
            return
        names = {id(parameter): name for module in roots() for name, parameter in named_parameters(module)}
        self._names.update({label: names[id(p)] for label, p in nameless if id(p) in names})

    def _tell(self, new: tuple[Difference, ...]) -> None:
        if callable(self.action):
            self.action(new)
            return
        message = _message(new)
        if self.action == "raise":
            raise GradientSyncError(message, new)
        notices.warn_once(f"gradient-sync-check:{id(self)}:{message}", message, stacklevel=6)


def _form(named: list[tuple[str, Any]], tensors: list[tuple[str, str, Any]]) -> Form:
    """Names and shapes of what is compared."""
    kinds = ("buffer", "optimizer state")
    return [
        *((name, tuple(parameter.shape)) for name, parameter in named),
        *((f"{kind} {name}", tuple(tensor.shape)) for kind, name, tensor in tensors if kind in kinds),
    ]


def _message(new: tuple[Difference, ...]) -> str:
    lines = [
        f"At step {one.step}: they have different parameters, in number, name or shape, or different options of the "
        f"check (ranks that agree: {' | '.join(map(_span, one.ranks[:4]))})"
        for one in new
        if one.kind == "model"
    ]
    for kind in ("gradient", "parameter", "buffer", "optimizer state"):
        of_kind = [difference for difference in new if difference.kind == kind]
        if not of_kind:
            continue
        first = of_kind[0]
        since = "the first check" if first.equal_at is None else f"equal at step {first.equal_at}"
        listed = ", ".join(difference.name for difference in of_kind[:NAMED_AT_MOST])
        more = f" and {len(of_kind) - NAMED_AT_MOST} more" if len(of_kind) > NAMED_AT_MOST else ""
        groups = " | ".join(_span(ranks) for ranks in first.ranks[:4]) + (" | ..." if len(first.ranks) > 4 else "")
        missing = f"; there is none on rank {_span(first.missing)}" if first.missing else ""
        lines.append(f"At step {first.step} ({since}): {kind}s of {listed}{more} (ranks that agree: {groups}{missing})")
    return (
        f"Ranks train different models. {'. '.join(lines)}. Something goes past DDP: a part of the module that is "
        "called by itself, a parameter that was unfrozen or added after the set-up, or a change that only some ranks "
        "make."
    )


def _span(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


# -------------------------------------------------------------------- callbacks of the Lightnings that are there


def _loaded_callbacks() -> tuple[str, ...]:
    return tuple(name for name in _CALLBACKS if getattr(sys.modules.get(name), "Callback", None) is not None)


@lru_cache(maxsize=None)
def _with_callbacks(cls: Any, modules: tuple[str, ...]) -> Any:
    """``cls`` as a subclass of these modules' ``Callback``, so that a Trainer of either namespace takes it for one."""
    bases = tuple(base for name in modules if not issubclass(cls, base := sys.modules[name].Callback))
    if not bases:
        return cls
    contents = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (cls, *bases), {**contents, "_made_for": modules})


def _remake(cls: Any, modules: tuple[str, ...], state: dict[str, Any]) -> Any:
    import importlib

    for name in modules:
        importlib.import_module(name)
    made = object.__new__(_with_callbacks(cls, modules))
    vars(made).update(state, _modules=[])
    made._forget_optimizers()
    return made
