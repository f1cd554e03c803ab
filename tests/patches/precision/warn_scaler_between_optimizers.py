"""The program of ``one-scaler-update``."""

from _expect import same, warns

BOTH = {"program": "one_scaler_update", "on": ("2.0.0", "2.6.6")}

EXPECT = [
    warns(["fabric", "manual"], "changed scale causes a warning", "16-mixed changed its scale", **BOTH),
    same(["fabric turns", "manual turns"], "no warning for optimizers that take turns", **BOTH),
]
