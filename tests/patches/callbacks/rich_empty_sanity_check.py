"""With RichProgressBar an empty list of validation loaders ends the run."""

from _expect import bug

EXPECT = [bug(stock="assert self.val_sanity_progress_bar_id is not None", patched={"steps": 2})]

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
import rich.console

clear_live = rich.console.Console.clear_live
# As in older versions of rich, which don't need rich-progress-bar.
rich.console.Console.clear_live = lambda self: clear_live(self) if getattr(self, "_live_stack", True) else None


class Model(scenario.BoringModel):
    def val_dataloader(self):
        return []


if __name__ == "__main__":
    bar = scenario.pl.callbacks.RichProgressBar()
    trainer = scenario.trainer(max_steps=2, enable_progress_bar=True, callbacks=bar)
    with scenario.observing_errors():
        trainer.fit(Model())
    scenario.observe(steps=trainer.global_step)
