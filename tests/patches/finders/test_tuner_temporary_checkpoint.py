from lightning_patches.patches.finders import tuner_temporary_checkpoint


def test_explicit_weights_only_is_respected():
    """Upstream's master has this argument of lr_find; no release has it yet."""
    asked = []
    load = tuner_temporary_checkpoint._load(lambda *args, **kwargs: asked.append((args, kwargs)), "lightning")
    finder = "def _lr_find(load, ckpt_path, *args, **kwargs):\n    load(ckpt_path, None, *args, **kwargs)\n"
    module = {"__name__": "lightning.pytorch.tuner.lr_finder"}
    exec(finder, module)
    module["_lr_find"](load, ".lr_find_1.ckpt", True)
    module["_lr_find"](load, ".lr_find_1.ckpt", weights_only=True)
    assert asked == [((".lr_find_1.ckpt", None, True), {}), ((".lr_find_1.ckpt", None), {"weights_only": True})]
