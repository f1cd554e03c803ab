"""save_hyperparameters looks for the arguments of __init__ in the method that creates the object."""

from _expect import bug, fixed

BUG = "KeyError: 'depth'"
RIGHT = {"teacher": {"depth": 2}, "student": {"width": 4}}

EXPECT = [
    bug(stock=BUG, patched=RIGHT),
    # The function with the bug has another result or name in each of these releases.
    fixed("", "hyperparameters are saved in releases before 1 9 4", stock=BUG, patched=RIGHT, on=("1.9.0", "1.9.3")),
]

import _scenario as scenario


class Student(scenario.BoringModel):
    def __init__(self, width):
        super().__init__()
        self.save_hyperparameters()


class Teacher(scenario.BoringModel):
    def __init__(self, depth):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        super().setup(stage)
        self.student = Student(width=4)


if __name__ == "__main__":
    model = Teacher(depth=2)
    with scenario.observing_errors():
        scenario.trainer(max_steps=1, limit_val_batches=0).fit(model)
    scenario.observe(teacher=dict(model.hparams), student=dict(model.student.hparams))
