from tests.support.programs import Program, sees

PROGRAM = Program("hparams-that-yaml-refuses", "2.2.5", "pytorch-lightning")

ERROR = "ValueError: dictionary update sequence element #0 has length 1"
KINDS = {"dtype": {"special": "dtype"}, "metric": {"special": "MeanMetric"}}


def test_two_unserializable_hparams_are_both_dropped():
    shim = PROGRAM.shim("both").facts
    assert shim == PROGRAM.stock("both", "2.3.0").facts
    assert shim["written"] == {"width": 2, "special": "dtype", "other": "Refusing"}


test_serializable_hparams_are_written_as_on_stock = PROGRAM.unchanged(
    "plain", "TypeError", check=sees(lambda seen: seen["error"] is None)
)

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: (seen["error"] or "").startswith(ERROR)),
        case=case,
        right=sees(
            lambda seen, kind=kind: (
                (seen["error"], seen["steps"], seen["skipped"]) == (None, 2, list(kind))
                and seen["written"] == {"width": 2, "special": None, "other": None, **kind}
            )
        ),
    )
    for case, kind in KINDS.items()
)
