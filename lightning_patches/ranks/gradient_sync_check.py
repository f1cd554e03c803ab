"""A callback that detects if ranks no longer train the same model.

Under data parallelism, all ranks have the same parameters and step with the same gradients. Code that bypasses DDP (a
direct call of a submodule, a parameter that is unfrozen later, an update under ``no_grad`` on one rank) causes no
error, but each rank then trains a different model. :class:`GradientSyncCheck` compares the ranks every few steps.
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
"""Maximum number of parameters in a message."""
_CALLBACKS = ("lightning.pytorch.callbacks.callback", "pytorch_lightning.callbacks.callback")
_SHARDING = ("FSDPStrategy", "XLAFSDPStrategy", "DeepSpeedStrategy", "ModelParallelStrategy")
_NAMELESS = "parameter "  # prefix of the label of a parameter whose module is unknown
_COMPARABLE, _SHARDED, _NOTHING = 0, 1, 2
_REASONS = {
    _SHARDED: "the module is sharded: each rank has its own part of the parameters",
    _NOTHING: "no parameter is complete on every rank",
}


class GradientSyncError(LightningPatchesError, RuntimeError):
    """Ranks train different models. Raised in every rank if ``action`` is ``"raise"``.

    Args:
        message: description of the differences.
        differences: the differences as data.
    """

    def __init__(self, message: str, differences: tuple[Difference, ...] = ()) -> None:
        super().__init__(message)
        self.differences = differences


@dataclass(frozen=True)
class Difference:
    """A tensor that is not the same on all ranks.

    Args:
        kind: ``"gradient"``, ``"parameter"``, ``"buffer"`` or ``"optimizer state"``. ``"model"`` if the ranks can't be
            compared, since their parameters differ in number, name or shape, or the check's options differ.
        name: the parameter's name in the module; ``"exp_avg of weight"`` for optimizer state; "" for ``"model"``.
        step: number of optimizer steps at the first check that found the difference. With Fabric, it includes the
            current step.
        equal_at: ``step`` of the last check at which all ranks were equal; ``None`` if they never were.
        ranks: groups of ranks that agree, ``((0, 1), (2,))``.
        missing: ranks on which the gradient is ``None``.
    """

    kind: str
    name: str
    step: int
    equal_at: Optional[int]
    ranks: tuple[tuple[int, ...], ...]
    missing: tuple[int, ...] = ()


class Comparison(Tuple[Difference, ...]):
    """The new differences that :meth:`GradientSyncCheck.check` found.

    Args:
        differences: the new differences.
        outcome: ``"equal"``, ``"different"`` (also if all differences were found before), or ``"not comparable"`` if
            there is only one rank, or no parameter is complete on every rank.
    """

    outcome: str

    def __new__(cls, differences: Iterable[Difference], outcome: str) -> Comparison:
        made = super().__new__(cls, tuple(differences))
        made.outcome = outcome
        return made


Action = Union[str, Callable[[Tuple[Difference, ...]], None]]


Form = List[Tuple[str, Tuple[int, ...]]]


class GradientSyncCheck:
    """Compare checksums of gradients and parameters across ranks every few steps, with two small collectives.

    The first collective has the same shape on all ranks, and its result decides for all ranks if the second one runs.
    So ranks with different parameters get an error, and do not hang.

    Use it as ``Trainer(callbacks=[GradientSyncCheck()])`` or ``Fabric(callbacks=[GradientSyncCheck()])``, with either
    namespace. Create it after you import Lightning: it is a ``Callback`` of each imported Lightning.

    Gradients are compared right before (Trainer) or after (Fabric) an optimizer steps, and only the gradients of that
    optimizer, since gradients may differ within an accumulation window. Frozen parameters are compared only at the
    first check. Buffers are not compared by default, since those of BatchNorm differ between ranks. NaN equals NaN.
    Fabric has the necessary hooks since 2.0.5. With older releases, and without Trainer and Fabric, call :meth:`check`
    after a step.

    With strategies that give each rank only a part of the parameters (FSDP, DeepSpeed, ModelParallelStrategy), the
    check warns once and stays off. If only a part of a module is sharded (DTensor), the other parameters are compared.
    All ranks must take the same optimizer steps, as with DDP.

    Args:
        every_n_steps: number of optimizer steps from one check to the next. The first step is always checked. A
            check costs less than a step, so a check every 100 steps costs less than 1 % of the training time.
        action: ``"warn"`` (on rank zero, for new differences), ``"raise"`` (:class:`GradientSyncError` in every rank),
            or a function that every rank calls with the new differences.
        gradients: compare gradients.
        parameters: compare parameters.
        buffers: compare buffers.
        optimizer_state: compare the optimizer's state, such as Adam's averages. Do not use it with an optimizer that
            shards its state (``ZeroRedundancyOptimizer``).

    Raises:
        ValueError: ``every_n_steps`` is below 1, ``action`` is unknown, or there is nothing to compare.
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
            raise ValueError(f"every_n_steps must be a number of optimizer steps, 1 or more, not {every_n_steps!r}")
        if action not in ("warn", "raise") and not callable(action):
            raise ValueError(f'action must be "warn", "raise" or a function, not {action!r}')
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
        self._steps: dict[int, int] = {}  # steps of each optimizer, numbered in the order of their first steps
        self._forget_optimizers()
        self._equal_at: dict[tuple[str, str], int] = {}
        self._known: set[tuple[str, str]] = set()
        self._frozen_compared = False
        self._off = False

    def _forget_optimizers(self) -> None:
        # id() can't be the key: Python reuses ids at times that depend on the garbage collector of each rank.
        self._order: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._optimizers = 0

    def __reduce__(self) -> Any:
        # The class depends on the imported Lightning packages, so unpickling creates it again.
        state = {name: value for name, value in vars(self).items() if name not in ("_modules", "_order", "_optimizers")}
        base = next(cls for cls in type(self).__mro__ if "_callback_modules" not in vars(cls))
        return _remake, (base, vars(type(self)).get("_callback_modules", ()), state)

    # ---------------------------------------------------------------- hooks of Trainer and Fabric

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Reset the check at the start of a fit (Trainer)."""
        self._reset()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Check before the optimizer step (Trainer): gradients are complete and not clipped yet."""
        if self._is_due(optimizer) and not self._refuses(trainer.strategy):
            wrapped = getattr(trainer, "model", pl_module)
            self._compare(
                named_parameters(pl_module), optimizer, trainer.global_step, [wrapped], group_of(wrapped), [pl_module]
            )

    def on_after_setup(self, fabric: Any, module: Any) -> None:
        """Watch a module that was set up (Fabric)."""
        self.watch(module)

    def on_after_optimizer_step(self, strategy: Any, optimizer: Any) -> None:
        """Check after the optimizer step (Fabric)."""
        if self._is_due(optimizer) and not self._refuses(strategy):
            modules = [module for known in self._modules if (module := known()) is not None]
            named, step = self._watched(modules, optimizer), self._steps[self._order[optimizer]]
            # Use the strategy's group and not a module's: which modules are alive differs between ranks.
            group = getattr(strategy, "_ddp_kwargs", {}).get("process_group")
            wrapped = [forward_of(module) for module in modules]
            self._compare(named, optimizer, step, wrapped, group, modules, self._nameless(optimizer))

    # ---------------------------------------------------------------- public methods

    def watch(self, module: Any) -> Any:
        """Also compare this module's parameters, and use its names in messages. Return the module.

        Fabric's ``setup`` calls this method. After ``setup_module`` and ``setup_optimizers``, call it yourself;
        otherwise, only the optimizer's parameters are compared.
        """
        if all(known() is not module for known in self._modules):
            self._modules.append(weakref.ref(module))
        return module

    def check(self, module: Any, optimizer: Any = None, step: int = 0) -> Comparison:
        """Compare now, independent of ``every_n_steps``. This is a collective: every rank must call it.

        Args:
            module: the module whose parameters are compared.
            optimizer: compare only the gradients of this optimizer's parameters; ``None`` for all gradients.
            step: the number to report.

        Returns:
            The new differences and the ``outcome``.

        Raises:
            GradientSyncError: there are new differences, and ``action`` is ``"raise"``.
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
        """Return the parameters of the modules, then the others of the optimizer, with unique labels."""
        named: dict[int, tuple[str, Any]] = {}
        for number, module in enumerate(modules, 1):
            for name, parameter in named_parameters(module):
                label = name if number == 1 else f"{name} (module {number})"
                named.setdefault(id(parameter), (label, parameter))
        for label, parameter in self._nameless(optimizer):
            named.setdefault(id(parameter), (label, parameter))
        return list(named.values())

    def _nameless(self, optimizer: Any) -> list[tuple[str, Any]]:
        """Return the parameters of an optimizer, labeled by their position in it."""
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
        fallback: Optional[list[tuple[str, Any]]] = None,
    ) -> Comparison:
        """Compare, and report new differences.

        Args:
            fallback: parameters to compare if ranks have different ``named``. Then the models need not differ: some
                ranks may still have modules that are no longer used. ``None`` to report a difference of the models.
        """
        ignored = {name for m in wrapped for name in getattr(unwrapped(m), "_ddp_params_and_buffers_to_ignore", ())}
        device = device_of(named, group)
        named = [(name, p) for name, p in named if name not in ignored and not is_sharded(p)]
        fallback = [(name, p) for name, p in fallback or [] if not is_sharded(p)] if fallback is not None else named
        tensors = self._tensors(named, optimizer)
        if self.buffers:
            tensors += [("buffer", name, b) for m in modules for name, b in buffers(m) if name not in ignored]
        forms = [_form(named, tensors), _form(fallback, self._tensors(fallback, optimizer))]
        reason = _SHARDED if holds_shards(wrapped) else _COMPARABLE if named else _NOTHING
        worst, (all_alike, alike) = self._agree(reason, forms, group, device)
        if worst != _COMPARABLE:
            self._turn_off(_REASONS[worst])
            return Comparison((), "not comparable")
        if len(all_alike) > 1 and len(alike) == 1:
            named, tensors = fallback, self._tensors(fallback, optimizer)
            notices.warn_once(
                "gradient-sync-check:lists",
                "GradientSyncCheck compares only the parameters of the optimizer, since those of the modules differ "
                "between ranks in number, name or shape.",
                stacklevel=5,
            )
        if len(alike) > 1:
            return self._report(
                {("model", ""): Difference("model", "", step, self._equal_at.get(("model", "")), alike)}
            )
        self._equal_at["model", ""] = step
        self._frozen_compared = True
        found = self._differing(tensors, named, group, device, step)
        self._equal_at.update(
            {(kind, label): step for kind, label, t in tensors if t is not UNCOMPARED and (kind, label) not in found}
        )
        return self._report(found)

    def _tensors(self, named: list[tuple[str, Any]], optimizer: Any) -> list[tuple[str, str, Any]]:
        """Return kind, label and tensor of each comparison. If the models match, every rank returns the same number."""
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

    def _report(self, found: dict[tuple[str, str], Difference]) -> Comparison:
        """Report the differences that earlier checks have not found, and return them."""
        # Compare labels, which are the same in every rank. Names may differ between ranks.
        new = tuple(difference for key, difference in found.items() if key not in self._known)
        self._known.update(found)
        self.differences += new
        if new:
            self._report_differences(new)
        return Comparison(new, "different" if found else "equal")

    def _agree(
        self, reason: int, forms: list[Form], group: Any, device: Any
    ) -> tuple[int, list[tuple[tuple[int, ...], ...]]]:
        """Return the most serious reason why a rank can't compare, and for each form the groups of ranks that agree.

        This collective has the same shape on every rank, and every rank must take part. Its result decides for all
        ranks if the next collective runs.
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
        """Compare the checksums of all tensors with one collective, then examine the tensors that differ."""
        import torch

        with torch.no_grad():
            sums = torch.stack([checksum(tensor, device) for _, _, tensor in tensors])
            extremes = torch.cat([sums, -sums])
            torch.distributed.all_reduce(extremes, op=torch.distributed.ReduceOp.MAX, group=group)
            suspects = (extremes[: len(sums)] != -extremes[len(sums) :]).nonzero().flatten().tolist()
            return self._find_groups([tensors[i] for i in suspects], named, group, device, step) if suspects else {}

    def _find_groups(
        self, suspects: list[tuple[str, str, Any]], named: list[tuple[str, Any]], group: Any, device: Any, step: int
    ) -> dict[tuple[str, str], Difference]:
        """Find the groups of ranks that agree on each tensor, with one more collective. All NaN are equal."""
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
        """Find the names of these parameters in their modules. This is slow, so call it only for a message."""
        if not nameless:
            return
        names = {id(parameter): name for module in roots() for name, parameter in named_parameters(module)}
        self._names.update({label: names[id(p)] for label, p in nameless if id(p) in names})

    def _report_differences(self, new: tuple[Difference, ...]) -> None:
        if callable(self.action):
            self.action(new)
            return
        message = _message(new)
        if self.action == "raise":
            raise GradientSyncError(message, new)
        notices.warn_once(f"gradient-sync-check:{id(self)}:{message}", message, stacklevel=6)


def _form(named: list[tuple[str, Any]], tensors: list[tuple[str, str, Any]]) -> Form:
    """Return the names and shapes of the compared tensors."""
    kinds = ("buffer", "optimizer state")
    return [
        *((name, tuple(parameter.shape)) for name, parameter in named),
        *((f"{kind} {name}", tuple(tensor.shape)) for kind, name, tensor in tensors if kind in kinds),
    ]


def _message(new: tuple[Difference, ...]) -> str:
    lines = [
        f"At step {one.step}: their parameters differ in number, name or shape, or the options of the check differ "
        f"(ranks that agree: {' | '.join(map(_span, one.ranks[:4]))})"
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
        missing = f"; it is missing on rank {_span(first.missing)}" if first.missing else ""
        lines.append(f"At step {first.step} ({since}): {kind}s of {listed}{more} (ranks that agree: {groups}{missing})")
    return (
        f"Ranks train different models. {'. '.join(lines)}. A change bypasses DDP: the script calls a part of "
        "the module directly, a parameter was unfrozen or added after the set-up, or only some ranks make the change."
    )


def _span(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


def _loaded_callbacks() -> tuple[str, ...]:
    return tuple(name for name in _CALLBACKS if getattr(sys.modules.get(name), "Callback", None) is not None)


@lru_cache(maxsize=None)
def _with_callbacks(cls: Any, modules: tuple[str, ...]) -> Any:
    """Return ``cls`` as a subclass of these modules' ``Callback``, so that Trainers of both namespaces accept it."""
    bases = tuple(base for name in modules if not issubclass(cls, base := sys.modules[name].Callback))
    if not bases:
        return cls
    contents = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (cls, *bases), {**contents, "_callback_modules": modules})


def _remake(cls: Any, modules: tuple[str, ...], state: dict[str, Any]) -> Any:
    import importlib

    for name in modules:
        importlib.import_module(name)
    made = object.__new__(_with_callbacks(cls, modules))
    vars(made).update(state, _modules=[])
    made._forget_optimizers()
    return made
