"""A subclass of a deprecated precision plugin recurses without end. Case: the plugin's name, and the number of
subclasses between it and the created one."""

from _expect import bug, same

EXPECT = [
    bug(
        ["PrecisionPlugin:1", "DoublePrecisionPlugin:1", "MixedPrecisionPlugin:2"],
        stock="RecursionError: maximum recursion depth exceeded",
        patched={"steps": 2, "made": "Mine"},
        since="2.2.0",
    ),
    same(
        ["PrecisionPlugin:0", "FSDPMixedPrecisionPlugin:1"],
        "working plugins are created as on stock",
        alone=True,
        on="2.2.0",
    ),
]

import _scenario as scenario

if __name__ == "__main__":
    name, depth = scenario.CASE.split(":")
    plugin = getattr(scenario.pytorch("plugins"), name)
    for _ in range(int(depth)):
        plugin = type("Mine", (plugin,), {})
    options = {"precision": "bf16-mixed", "device": "cpu"} if "Mixed" in name else {}
    with scenario.observing_errors():
        precision = plugin(**options)
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, plugins=[precision])
    trainer.fit(scenario.BoringModel())
    scenario.observe(steps=trainer.global_step, made=type(precision).__name__, precision=trainer.precision)
