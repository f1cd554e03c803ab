from tests.support.programs import Program, observes, only, sees

PROGRAM = Program("fabric-method-guard-hooks", "2.6.6")

test_refused_or_failing_call_ends_as_on_stock = PROGRAM.unchanged(
    "refused", "failing", on=("2.1.1", "2.6.6"), observed=only("call")
)
test_module_without_a_refused_call_is_unchanged = PROGRAM.unchanged(
    "accepted", check=observes({"call": "seen", "hooks": [0, 0], "saved": "NoneType", "after": "seen"})
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: "_wrap_method_with_module_call_tracker.<locals>.hook" in seen["saved"]),
    "refused",
    "failing",
    recommended="accepted",
    observed=only("hooks", "saved", "after"),
    note="the refused or failing call itself is left out: the recommended usage has none",
)
