"""LightningCLI with a logger that has no save_dir ends in a bare AssertionError. Cases: ``remote`` (such a logger),
``no-logger``, ``not-in-log-dir`` (the workaround), ``csv``, ``again`` (there is a config of a previous run), ``own`` (a
callback whose save_config records its calls)."""

from _expect import bug, patched, same

EXPECT = [
    bug(
        "remote",
        stock=lambda seen: seen.get("error", "").startswith("AssertionError"),
        patched={"configs": 1},
        like="no-logger",
    ),
    same(["no-logger", "not-in-log-dir", "csv"], "program that needs no fix is unchanged"),
    patched("again", "config of a previous run is not overwritten", "config.yaml to NOT exist"),
    patched("own", "save_config of a subclass is called once", [{"configs": 1, "steps": 1, "saved": 1}]),
]

import os

import _scenario as scenario

cli = scenario.pytorch("cli")
Logger = scenario.pytorch("loggers.logger").Logger
CASE = scenario.CASE
OUT = "."


class Remote(Logger):
    name, version = "remote", "1"

    def log_metrics(self, metrics, step=None):
        pass

    def log_hyperparams(self, params, *args, **kwargs):
        pass


class Saving(cli.SaveConfigCallback):
    saved = 0

    def save_config(self, trainer, pl_module, stage):
        Saving.saved += 1


class CommandLine(cli.LightningCLI):
    def instantiate_trainer(self, **kwargs):
        logger = {"no-logger": False, "csv": scenario.pl.loggers.CSVLogger(OUT)}.get(CASE, Remote())
        return super().instantiate_trainer(logger=logger, **kwargs)


class Model(scenario.BoringModel):
    pass


if __name__ == "__main__":
    defaults = {**scenario.QUIET, "max_steps": 1, "accelerator": "cpu", "default_root_dir": OUT}
    options = {"save_config_kwargs": {"save_to_log_dir": False}} if CASE == "not-in-log-dir" else {}
    if CASE in ("own", "not-in-log-dir"):
        options["save_config_callback"] = Saving
    if CASE == "again":
        open(os.path.join(OUT, "config.yaml"), "w").close()
    with scenario.observing_errors():
        made = CommandLine(Model, args=["fit"], trainer_defaults=defaults, **options)
    files = [name for _, _, names in os.walk(OUT) for name in names]
    scenario.observe(configs=files.count("config.yaml"), steps=made.trainer.global_step, saved=Saving.saved)
