"""load_state_dict of SpikeDetection raises an error. Case ``hand``: the attributes are set by hand."""

from _expect import bug, whole_run

EXPECT = [
    bug(
        stock=whole_run(
            lambda result: not result.ok and ("'bad_bachtes'" in result.output or "'running'" in result.output)
        ),
        patched={"bad_batches": [1, 2], "mode": "max"},
        like="hand",
        since="2.1.0",
    )
]

import _scenario as scenario

if __name__ == "__main__":
    module = scenario.fabric("utilities.spike")
    old = module.SpikeDetection(mode="max", warmup=3, atol=0.5, rtol=None, exclude_batches_path="there")
    old.bad_batches.extend([1, 2])
    old.last_val = 4.0
    new = module.SpikeDetection()
    with scenario.observing_errors():
        if scenario.CASE == "hand":
            for name in ("mode", "warmup", "atol", "rtol", "exclude_batches_path", "bad_batches", "last_val"):
                setattr(new, name, getattr(old, name))
        else:
            new.load_state_dict(old.state_dict())
    state = new.state_dict()
    scenario.observe(**{name: state[name] for name in state if name not in ("running", "mean")})
