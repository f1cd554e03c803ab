"""Lightning 1.7 imports a private helper that torchmetrics no longer has."""

from _expect import fixed

MESSAGE = "cannot import name '_compare_version' from 'torchmetrics.utilities.imports'"

EXPECT = [
    fixed(
        "",
        "lightning is imported without leftovers",
        stock=MESSAGE,
        patched={"steps": 4, "rich": True, "left_behind": False},
        fresh=True,
        on=("1.7.0", "1.7.7"),
    )
]

from tests.support import with_rich  # noqa: F401  # isort: skip

import _model_1x as user
import _scenario as scenario

if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=1)
    trainer.fit(user.Model())
    rich = scenario.pytorch("callbacks.progress.rich_progress")
    scenario.observe(steps=trainer.global_step, rich=rich._RICH_AVAILABLE)

    import torchmetrics.utilities.imports as theirs

    scenario.observe(left_behind=hasattr(theirs, "_compare_version"))
