"""A callback of configure_callbacks that is a subclass of the Trainer's is added to it."""

from _expect import bug

EXPECT = [bug(stock={"callbacks": ["Base", "Other", "Own"]}, patched={"callbacks": ["Other", "Own"]})]

import _scenario as scenario


class Base(scenario.pl.Callback):
    pass


class Own(Base):
    pass


class Other(scenario.pl.Callback):
    pass


class Model(scenario.BoringModel):
    def configure_callbacks(self):
        return [Own()]


if __name__ == "__main__":
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0, callbacks=[Base(), Other()])
    trainer.fit(Model())
    scenario.observe(callbacks=[type(one).__name__ for one in trainer.callbacks])
