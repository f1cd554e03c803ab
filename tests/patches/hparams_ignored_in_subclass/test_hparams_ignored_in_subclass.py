from tests.equivalence.proof import proofs, sees


def _saved(seen):
    return seen["derived"].get("backbone") == "large" and "backbone" in seen["saved"]


def _left_out(seen):
    return (
        seen["derived"] == seen["initial"] == {"width": 2, "rate": (0.1).hex()}
        and seen["saved"] == ["rate", "width"]
        and seen["listed"] == {"width": 2, "depth": 2}
        and seen["untouched"] == {"width": 2, "backbone": "large"}
    )


PROOFS = proofs("hparams-ignored-in-subclass", sees(_saved), right=sees(_left_out))
