"""SpikeDetection can load its state."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: Any) -> None:
        for name in ("last_val", "mode", "warmup", "atol", "rtol", "bad_batches"):
            setattr(self, name, state_dict.pop(name))
        self.exclude_batches_path = state_dict.pop("bad_batches_path")
        self.running_mean.load_state_dict(state_dict.pop("running"))
        self.running_mean.base_metric.load_state_dict(state_dict.pop("mean"))

    return load_state_dict


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<=2.6.6",),
    targets=(Target("fabric.utilities.spike:SpikeDetection.load_state_dict", _load_state_dict),),
    upstream=Upstream(pull_requests=(19282,), others=((19282, "2.1.4"),)),
    impact=Impact(
        "A run with SpikeDetection cannot be resumed: load_state_dict raises an error.",
        ("KeyError: 'bad_bachtes'", "'SpikeDetection' object has no attribute 'running'"),
        error="KeyError: 'bad_bachtes'",
    ),
    note="The official fix corrects one misspelled key, after which the next line fails; this patch fixes "
    "both. Without the patch, set the attributes of a new SpikeDetection to those of the old one.",
)
