"""With LightningCLI, save_hyperparameters saves arguments that are linked on instantiation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _call(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __call__(self: Any, class_type: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        dump = self.cli.config_dump.get(self.key) or {}
        linked = {path: value for path, value in _linked(self, kwargs).items() if _is_plain(value)}
        if not linked:
            return original(self, class_type, *args, **kwargs)
        for path, value in linked.items():
            dump = _with(dump, path, value)
        completed = SimpleNamespace(cli=SimpleNamespace(config_dump={self.key: dump}), key=self.key)
        return original(completed, class_type, *args, **kwargs)

    return __call__


def _linked(instantiator: Any, arguments: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the values that linked arguments passed to this object and its arguments, as jsonargparse recorded."""
    cli = instantiator.cli
    found: dict[tuple[str, ...], Any] = {}
    links = vars(cli._parser(cli.subcommand)).get("_links_group")
    for action in getattr(links, "_group_actions", ()):
        key, *names = (part for part in action.target[0].split(".") if part != "init_args")
        path = tuple(names)
        if key == instantiator.key and action.apply_on == "instantiate":
            if len(path) == 1 and path[0] in arguments:
                found[path] = arguments[path[0]]
            elif len(path) > 1 and hasattr(action, "applied_value"):  # jsonargparse 4.39 and later
                found[path] = action.applied_value
    return found


def _with(dump: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    if not isinstance(dump, dict):
        return dump  # there is no object with arguments
    if "class_path" in dump:
        return {**dump, "init_args": _with(dump.get("init_args", {}), path, value)}
    return {**dump, path[0]: _with(dump.get(path[0]), path[1:], value)}


def _is_plain(value: Any) -> bool:
    """True if the value consists only of numbers, strings, lists and dicts. Other objects would have to be pickled."""
    if type(value) in (list, tuple, dict):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return all(_is_plain(item) for item in items)
    return value is None or type(value) in (bool, int, float, str)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "hyperparameters in checkpoints and logs"),
    affected=(">=2.3.0,<2.5.2",),
    targets=(Target("pytorch.cli:_InstantiatorFn.__call__", _call),),
    upstream=Upstream(issues=(20311, 20147), pull_requests=(20777,), fixed_in="2.5.2"),
    impact=Impact(
        "Arguments set by link_arguments(..., apply_on='instantiate') are missing in the hyperparameters of the "
        "checkpoint: load_from_checkpoint creates the model with the defaults, or fails.",
        ("linked argument missing in hparams with LightningCLI", "hyper_parameters without linked arguments"),
        consequences=(
            Consequence(
                ("in parse_object ... the following arguments are required: module....",),
                "instantiate_module",
                "LightningCLI created the module, and its checkpoint lacks an argument",
                is_sure=True,
            ),
        ),
    ),
    added="0.2.0",
    note="The patch saves numbers, strings, lists and dicts. The official fix saves any linked value. Objects "
    "that cannot be pickled would end a run that works now.",
)
