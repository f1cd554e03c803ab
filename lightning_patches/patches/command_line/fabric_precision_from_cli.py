"""The precision passed to `lightning run model` does not conflict with Fabric()."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTOR = "fabric.connector:_Connector"


def _argument_from_env(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _argument_from_env(name: str, current: Any, default: Any) -> Any:
        # Since 2.1.0 Fabric's default is None, but the check still compares it with the old default.
        return original(name, current, default=None if name == "precision" else default)

    return _argument_from_env


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<2.1.2",),
    targets=(Target(f"{_CONNECTOR}._argument_from_env", _argument_from_env),),
    witnesses=(f"{_CONNECTOR}.__init__",),
    upstream=Upstream(
        pull_requests=(18928,),
        fixed_in="2.1.2",
        tests=("tests/tests_fabric/test_connector.py::test_precision_from_environment",),
    ),
    impact=Impact(
        "A script started with `lightning run model --precision=...` fails at Fabric(), although the script "
        "does not set a precision.",
        ("Your code has `Fabric(precision=None, ...)` but it conflicts with the value",),
        error="ValueError: Your code has `Fabric(precision=None, ...)` but it conflicts with the value "
        "`--precision=...` set through the CLI.",
    ),
)
