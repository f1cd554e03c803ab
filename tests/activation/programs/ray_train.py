"""A training script for Ray Train with two workers, each of which reports if the patches are applied.

Only the driver runs the script. Ray sends the function to the workers, which never import the script. So a script for
Ray needs the import inside the function.
"""

import os
import sys

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def train_on_worker():
    if os.environ["PROBE_WAY"] == "import":
        import lightning_patches  # noqa: F401
    import ray.train.lightning as ray_lightning
    import train

    model = train.Model("ray")
    trainer = train.pl.Trainer(
        strategy=ray_lightning.RayDDPStrategy(), plugins=[ray_lightning.RayLightningEnvironment()], accelerator="cpu",
        devices="auto", max_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer = ray_lightning.prepare_trainer(trainer)
    data = train.TensorDataset(train.torch.ones(4, 4))
    trainer.fit(model, train.DataLoader(data, batch_size=1))


if __name__ == "__main__":
    wanted = {name: os.environ[name] for name in ("PROBE_WAY", "PROBE_OUT", "PYTHONPATH")}
    if "LIGHTNING_PATCHES" in os.environ:
        wanted["LIGHTNING_PATCHES"] = os.environ["LIGHTNING_PATCHES"]
    wanted["PYTHONPATH"] += os.pathsep + os.path.dirname(os.path.abspath(__file__))
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": wanted})
    assert "lightning" not in sys.modules
    workers = ScalingConfig(num_workers=2, use_gpu=False)
    storage = RunConfig(storage_path=os.environ["PROBE_OUT"], name="ray")
    TorchTrainer(train_on_worker, scaling_config=workers, run_config=storage).fit()
    ray.shutdown()
