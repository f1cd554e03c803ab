"""A subclass of a deprecated precision plugin can be instantiated."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _type(original: None, namespace: str) -> Callable[..., type]:
    """Build a replacement for ``type`` in the module of the deprecated classes.

    Their code calls ``super(type(self), self).__init__``. The replacement returns the deprecated class instead of the
    subclass.
    """

    def type_(value: Any, *bases_and_contents: Any) -> type:
        if bases_and_contents:
            return type(value, *bases_and_contents)
        kind = type(value)
        for base in kind.__mro__:
            if getattr(base.__dict__.get("__init__"), "__qualname__", "") == "_create_class.<locals>.init":
                return base
        return kind

    return type_


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.2.0,<2.2.1",),
    targets=(Target("pytorch._graveyard.precision:type", _type, adds=True),),
    witnesses=("pytorch._graveyard.precision:_create_class",),
    upstream=Upstream(pull_requests=(19542,), commit="a6c0a31e57", fixed_in="2.2.1"),
    impact=Impact(
        "Creating a subclass of PrecisionPlugin, MixedPrecisionPlugin or another name deprecated in 2.2.0 causes an "
        "infinite recursion.",
        ("a subclass of MixedPrecisionPlugin recurses without end", "maximum recursion depth exceeded"),
        error="RecursionError: maximum recursion depth exceeded",
        frames=("/pytorch/_graveyard/precision.py",),
    ),
)
