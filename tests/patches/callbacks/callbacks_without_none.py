"""A Trainer one of whose callbacks is None. Cases: ``without`` None, ``removed`` (before the run), ``cli`` (an optional
callback of LightningCLI)."""

from _expect import bug, patched, same

EXPECT = [
    bug(stock="'NoneType' object has no attribute", patched={"given": 2, "run": 1}, like="without", compare=["run"]),
    same("removed", "program that removes None is unchanged", {"given": 2, "run": 1}),
    patched("cli", "optional callback of LightningCLI can be left out", {"steps": 2}),
]

import _scenario as scenario

if __name__ == "__main__":
    if scenario.CASE == "cli":
        command_line = scenario.pytorch("cli")

        class CommandLine(command_line.LightningCLI):
            def add_arguments_to_parser(self, parser):
                parser.add_lightning_class_args(scenario.pl.Callback, "extra", subclass_mode=True, required=False)

        options = ("logger=false", "accelerator=cpu", "devices=1", "max_steps=2", "enable_model_summary=false")
        program = CommandLine(
            scenario.BoringModel,
            args=["fit", *(f"--trainer.{option}" for option in options)],
            save_config_callback=None,
        )
        scenario.observe(steps=program.trainer.global_step)
    else:
        callbacks = [scenario.pl.Callback(), *[None] * (scenario.CASE != "without")]
        trainer = scenario.trainer(max_steps=1, limit_val_batches=0, callbacks=callbacks)
        given = len(trainer.callbacks)
        if scenario.CASE == "removed":
            trainer.callbacks.remove(None)
        trainer.fit(scenario.BoringModel())
        scenario.observe(given=given, run=len(trainer.callbacks))
