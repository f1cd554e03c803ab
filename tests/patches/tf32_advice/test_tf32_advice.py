from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("tf32-advice", "2.2.0", options={"simulated_cuda": True})

test_warning_of_stock_about_precision_is_kept = PROGRAM.unchanged(
    "trainer-unset", "fabric-unset", on=("2.0.9", "2.6.6"), check=sees(lambda seen: seen["advice"] > 0)
)
test_warning_of_stock_is_absent_if_precision_is_set = PROGRAM.unchanged(
    "trainer-older", on=("2.0.9", "2.6.6"), check=sees(lambda seen: seen["advice"] == 0)
)

PROOFS = tuple(
    PROGRAM.proof(
        ends_with("checking the matmul precision without a specific backend name"),
        case=case,
        simulated_cuda=True,
        recommended=f"{case}-older",
        since=since,
        right=sees(lambda seen: seen["advice"] == 0),
    )
    for case, since in (("trainer", ""), ("fabric", ""), ("monitor", "2.2.0"))
) + (
    PROGRAM.proof(
        ends_with("Invalid device id"),
        case="trainer-driver",
        simulated_cuda=True,
        recommended="trainer-older",
        right=sees(lambda seen: seen["advice"] == 0),
    ),
)
