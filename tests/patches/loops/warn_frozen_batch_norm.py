"""Warn when Lightning below 2.2 switches frozen batch norm back to training mode."""

from _expect import same, warns

trained, frozen = (lambda seen: seen["moved"], lambda seen: not seen["moved"])
NAMES = "The batch norm layer body.1 is in training mode, though"

EXPECT = [
    warns(
        ["fit", "start"],
        "warning names the layer that is trained",
        NAMES,
        program="eval_mode_kept",
        on=("2.0.0", "2.1.4"),
    ),
    warns(
        ["middle", "validated-before"],
        "warning names the layer in the middle of a run",
        NAMES,
        program="eval_mode_kept",
    ),
    same(
        ["trained", "evaluated"], "warning is absent if the model trains the layer", trained, program="eval_mode_kept"
    ),
    same(["kept", "again", "step"], "warning is absent if the layer stays frozen", frozen, program="eval_mode_kept"),
    same("fit", "next release keeps the mode", frozen, alone=True, program="eval_mode_kept", on="2.2.0"),
]
