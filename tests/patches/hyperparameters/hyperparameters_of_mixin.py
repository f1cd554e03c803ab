"""Classes that are not LightningModules, and whose objects are. ``saving`` calls save_hyperparameters itself;
``between`` is between two modules; ``holder`` is not a mixin: it creates a module. In the case ``method``, a method of
a mixin saves them."""

from _expect import bug, same


def _lost(seen):
    return seen["saving"] == {} and seen["between"] == {"leaf": 5}


EXPECT = [
    bug(
        stock=_lost,
        patched={"saving": {"width": 2}, "between": {"leaf": 5, "width": 4, "depth": 3}, "holder": {"leaf": 9}},
    ),
    same("method", "method of a mixin is unchanged", on="1.8.6"),
]

import _scenario as scenario


class Saving:
    def __init__(self, width=1):
        super().__init__()
        self.save_hyperparameters()


class OfSaving(Saving, scenario.BoringModel):
    pass


class Base(scenario.BoringModel):
    def __init__(self, leaf=1):
        super().__init__()
        self.save_hyperparameters()


class Between:
    def __init__(self, width=1, **options):
        super().__init__(**options)


class OfBetween(Between, Base):
    def __init__(self, depth=1, **options):
        super().__init__(**options)


class Parent:
    def __init__(self, size=1):
        pass


class Holder(Parent):
    def __init__(self, size=1):
        super().__init__(size)
        self.model = Base(leaf=9)


class Method:
    def build(self, width):
        self.add = super().__repr__
        self.save_hyperparameters({"width": width})


class OfMethod(Method, scenario.BoringModel):
    def __init__(self, width=1):
        super().__init__()
        self.build(width)


if __name__ == "__main__":
    if scenario.CASE == "method":
        scenario.observe(method=dict(OfMethod(width=7).hparams))
    else:
        scenario.observe(
            saving=dict(OfSaving(width=2).hparams),
            between=dict(OfBetween(depth=3, width=4, leaf=5).hparams),
            holder=dict(Holder(size=6).model.hparams),
        )
