from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = tuple(
    Proof(
        "fsdp-metrics-device",
        ends_with("Encountered different devices in metric calculation"),
        case=case,
        simulated_cuda=True,
        one_card=True,
        right=observes({"total": total.hex()}),
    )
    for case, total in (("trainer", 2.0), ("fabric", 1.0))
)
