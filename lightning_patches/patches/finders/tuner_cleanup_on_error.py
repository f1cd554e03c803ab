"""A failed learning rate or batch size search restores the initial state and shows its error."""

from __future__ import annotations

import inspect
import sys
from traceback import walk_tb
from types import FrameType
from typing import Any, Callable, Iterator, Optional

from lightning_patches import notices
from lightning_patches.engine.distributions import module_name, upstream_module
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.finders import _tuned
from lightning_patches.patches.finders._loops import LOOP_FLAGS, loops
from lightning_patches.patches.finders._own_checkpoint import finder_above, is_finder

_STAGES = ("train", "val", "test", "predict")


def _finder_below(error: BaseException, namespace: str) -> Optional[FrameType]:
    """Return the finder's frame in the error's traceback; ``None`` if there is no such frame."""
    return next((frame for frame, _ in walk_tb(error.__traceback__) if is_finder(frame, namespace)), None)


def _restored(error: BaseException, namespace: str) -> bool:
    """True if the error occurred while the finder restored the checkpoint, after a successful search."""
    home = module_name(namespace, "pytorch.trainer.connectors.checkpoint_connector")
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(each.f_code.co_name == "restore" and each.f_globals.get("__name__") == home for each in frames)


def _first_error(error: BaseException, namespace: str) -> BaseException:
    """Return the error that ended the finder, even if its cleanup raised another one."""
    first, current, seen = error, error.__context__, {id(error)}
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if _finder_below(current, namespace) is not None:
            first = current
        current = current.__context__
    return first


class _Before:
    """The state before the search, as far as a finder changes it.

    Args:
        trainer: the trainer that the finder will use.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        attributes: names of the hyperparameter that the finder may set.
    """

    def __init__(self, trainer: Any, namespace: str, attributes: tuple[str, ...]) -> None:
        self.trainer, self.namespace = trainer, namespace
        self.active_loop = loop = trainer._active_loop
        self.flags = [
            (each, name, vars(each)[name]) for each in loops(trainer) for name in LOOP_FLAGS if name in vars(each)
        ]
        owners = [
            (trainer.strategy, ("_optimizers", "_lightning_optimizers", "lr_scheduler_configs")),
            (trainer, ("callbacks", "loggers", "should_stop", *(f"limit_{s}_batches" for s in _STAGES))),
            (trainer.fit_loop.epoch_loop, ("max_steps",)),
            (trainer._checkpoint_connector, ("_ckpt_path", "_loaded_checkpoint")),
            (loop, ("verbose",)),
        ]
        self.values = [
            (owner, name, getattr(owner, name)) for owner, names in owners for name in names if hasattr(owner, name)
        ]
        self.modes = [(module, module.training) for module in modules(trainer.lightning_module)]
        self.attributes = attributes
        self.hyperparameters = list(_tuned.places(trainer, attributes))

    def put_back(self, error: BaseException) -> None:
        """Undo the finder's changes without a collective, since other ranks may run other code or may have ended.

        If a step fails, warn and continue with the others.

        Args:
            error: the finder's error. The loops' state is in the local variables of its traceback.
        """
        frame = _finder_below(error, self.namespace)
        known = {} if frame is None else frame.f_locals
        checkpoint_path = known.get("ckpt_path")
        to_load = None if _restored(error, self.namespace) else checkpoint_path  # restoring would fail again
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("the trainer's settings", self._settings),
            ("the initial weights and optimizer state", lambda: self._initial_state(to_load)),
            ("the progress of the loops", lambda: self._progress(known.get("params", {}).get("loop_state_dict"))),
            ("the tuned hyperparameter", self._hyperparameters),
            ("the temporary checkpoint (to be removed)", lambda: self._remove(checkpoint_path)),
        )
        for what, step in steps:
            try:
                step()
            except Exception as error:
                notices.warn_once(
                    f"tuner-cleanup-on-error: {what}",
                    f"[rank {notices.rank()}] a search failed, and this could not be restored: {what} "
                    f"({type(error).__name__}: {error}). Use a new Trainer and model to continue.",
                    all_ranks=True,
                )

    def _settings(self) -> None:
        for owner, name, value in self.values:
            setattr(owner, name, value)

    def _initial_state(self, path: Optional[str]) -> None:
        trainer, strategy = self.trainer, self.trainer.strategy
        base = upstream_module(self.namespace, "pytorch.strategies.strategy").Strategy
        loads = ("load_checkpoint", "load_model_state_dict", "load_optimizer_state_dict")
        as_base = all(getattr(type(strategy), name) is getattr(base, name) for name in loads)
        if path is None or not (as_base or trainer.world_size == 1):
            return  # a sharded model can be restored only by all ranks together
        io = upstream_module(self.namespace, "fabric.plugins.io.torch_io").TorchCheckpointIO
        try:
            if as_base and type(strategy.checkpoint_io) is io:
                # Load it like any other file, since another user who can write to the directory may have replaced it.
                checkpoint = upstream_module(self.namespace, "fabric.utilities.cloud_io")._load(path, "cpu")
            else:
                checkpoint = strategy.load_checkpoint(path)
        except FileNotFoundError:
            return  # never written, or already removed by the finder
        connector = trainer._checkpoint_connector
        loaded, connector._loaded_checkpoint = connector._loaded_checkpoint, checkpoint
        try:
            connector.restore_datamodule()
            connector.restore_model()
            connector.restore_training_state()
        finally:
            connector._loaded_checkpoint = loaded

    def _progress(self, state: Optional[dict[str, Any]]) -> None:
        for module, training in self.modes:
            module.training = training
        if self.active_loop is not None:
            if state is not None:
                self.active_loop.load_state_dict(state)
            self.active_loop._combined_loader = None
        self.trainer.fit_loop.epoch_loop.val_loop._combined_loader = None
        for loop, name, value in self.flags:
            setattr(loop, name, value)

    def _hyperparameters(self) -> None:
        now = {(id(holder), name): value for holder, name, value in _tuned.places(self.trainer, self.attributes)}
        for holder, name, value in self.hyperparameters:
            if now.get((id(holder), name)) is not value:
                _tuned.put(holder, name, value)

    def _remove(self, path: Optional[str]) -> None:
        if path is not None:
            self.trainer.strategy.remove_checkpoint(path)


def modules(model: Any) -> Iterator[Any]:
    """Yield the modules of a model.

    ``modules()`` is not called, since the program may override it. Traced modules have no ``_modules``.
    """
    waiting, seen = [model], set()
    while waiting:
        module = waiting.pop()
        if module is not None and id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting += vars(module).get("_modules", {}).values()


def _clean_up(original: Callable[..., Any], namespace: str, before: Callable[[dict[str, Any]], Any]) -> Any:
    signature = inspect.signature(original)

    def finder(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        if trainer.fast_dev_run:  # the finders skip the search
            return original(trainer, *args, **kwargs)
        try:
            call = signature.bind(trainer, *args, **kwargs)
            call.apply_defaults()
            state = _Before(trainer, namespace, before(call.arguments))
        except Exception:  # a stand-in for the Trainer, or a property of the program that raises
            return original(trainer, *args, **kwargs)
        try:
            return original(trainer, *args, **kwargs)
        except BaseException as error:
            failure = _first_error(error, namespace)
        try:
            state.put_back(failure)
            raise failure  # outside the except block, so that the error keeps its context
        finally:
            del failure  # otherwise the traceback refers to itself and keeps the model alive

    return finder


def _clean_up_lr_find(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def attributes(call: dict[str, Any]) -> tuple[str, ...]:
        if not call["update_attr"]:
            return ()
        return (call["attr_name"],) if call["attr_name"] else ("lr", "learning_rate")

    replacement: Callable[..., Any] = _clean_up(original, namespace, attributes)
    return replacement


def _clean_up_scale_batch_size(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    replacement: Callable[..., Any] = _clean_up(original, namespace, lambda call: (call["batch_arg_name"],))
    return replacement


def _restore(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore(self: Any, *args: Any, **kwargs: Any) -> None:
        # Since 2.5.5, after an error the finders restore the state in a collective of all ranks. A rank that fails
        # alone would wait for the others, which wait for its gradients, and its error would never be shown.
        error = sys.exc_info()[1]
        if error is not None:
            finder = finder_above(sys._getframe(1), namespace)
            if finder is not None and finder is _finder_below(error, namespace):
                raise error
        original(self, *args, **kwargs)

    return restore


def _remove_finder(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except BaseException:
            trainer = self._trainer  # only the callbacks that the Tuner adds have this attribute set
            trainer.callbacks = [each for each in trainer.callbacks if not getattr(each, "_early_exit", False)]
            raise

    return method


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "weights and settings of a script that continues after a failed search"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _clean_up_lr_find),
        Target("pytorch.tuner.batch_size_scaling:_scale_batch_size", _clean_up_scale_batch_size),
        Target("pytorch.tuner.tuning:Tuner.lr_find", _remove_finder),
        Target("pytorch.tuner.tuning:Tuner.scale_batch_size", _remove_finder),
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore", _restore, since="2.5.5"),
    ),
    upstream=Upstream(
        pull_requests=(21162,),
        others=((21162, "2.5.5"),),
        commit="e1e2534d32",
        tests=(
            "tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_checkpoint_cleanup_on_error",
            "tests/tests_pytorch/tuner/test_scale_batch_size.py::test_scale_batch_size_checkpoint_cleanup_on_error",
        ),
    ),
    impact=Impact(
        "When an error or Ctrl+C ends a learning rate or batch size search, the Trainer keeps the trial "
        "weights, limits, step count and callbacks, and a hidden checkpoint stays on disk. From 2.5.5 on "
        "another error can replace the first one, or the job hangs if only one rank fails.",
        (
            "a .lr_find_*.ckpt file is left behind",
            "a .scale_batch_size_*.ckpt file is left behind",
            "Trainer is already configured with a `LearningRateFinder` callback",
            "Trainer is already configured with a `BatchSizeFinder` callback",
        ),
        consequences=(
            Consequence(
                ("tuner/lr_finder.py in on_train_batch_start ... IndexError: list index out of range",),
                r"lr_finder\.py",
                "the callback of a failed learning rate search was not removed",
            ),
        ),
    ),
    note="With sharded strategies (FSDP, DeepSpeed, model parallel) on several devices, the weights are not "
    "restored, because a rank that fails cannot rely on the others; everything else is restored. A search "
    "that succeeds, and the fit after it, are unchanged. If a script catches a search's error and "
    "continues, it finds the weights and settings from before the search. Callbacks are restored before "
    "the error is raised, so their on_exception is called, as for any error in fit. The official change "
    "(2.5.5) restores weights and removes the file in a collective operation, and creates the DataLoaders "
    "again. It does not restore Trainer settings, limits and callbacks, it hides the first error if the "
    "DataLoader fails, too, and it hangs when a single rank fails.",
    after=("lr-finder-applies-lr",),
    around=("tuner-temporary-checkpoint",),
)
