"""Call methods of a module through Fabric's wrapper."""

from typing import Any, Callable


def through_forward(module: Any, name: str) -> Callable[..., Any]:
    """Return a function that calls a method of the wrapped module through the wrapper, and so through the strategy."""

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = module._original_module
        own_forward = inner.__dict__.get("forward")

        def restore() -> None:
            if own_forward is None:
                inner.__dict__.pop("forward", None)
            else:
                inner.forward = own_forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            restore()  # restore first, since the method may call the real forward
            return getattr(inner, name)(*args, **kwargs)

        inner.forward = forward
        try:
            return module.forward(*args, **kwargs)
        finally:
            restore()

    return call


def is_wrapped(module: Any) -> bool:
    return module._forward_module is not module._original_module
