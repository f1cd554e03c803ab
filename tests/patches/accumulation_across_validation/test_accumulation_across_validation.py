from tests.support.programs import Program, only, sees

PROGRAM = Program("accumulation-across-validation", "2.0.9", alone=True)
PROOFS = PROGRAM.proofs(
    # torch 1.13 sets gradients to zero, and later ones to None
    sees(lambda seen: all(gradient in (None, [(0.0).hex()]) for gradient in seen["gradients"])),
    "automatic",
    observed=only("gradients", "weight"),
    right=sees(lambda seen: seen["gradients"][0] == [((1 + 2) / 4).hex()] and not seen["overridden"]),
    note="how often zero_grad was called: 2.1.0 also calls it elsewhere",
)


def test_custom_hook_calls_the_original_zero_grad():
    assert PROGRAM.shim("own").facts["zeroed"] == 4 + 2  # by the hook, and by the loop at the end of a window


test_run_without_accumulation_is_unchanged = PROGRAM.unchanged("validate", "asked")
