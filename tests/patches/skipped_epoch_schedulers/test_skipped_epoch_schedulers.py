from tests.support.programs import Program, sees

PROGRAM = Program("skipped-epoch-schedulers", "2.5.6", alone=True)

PROOFS = PROGRAM.proofs(sees(lambda seen: len(set(seen["rates"])) == 1), "epoch", "plateau")

test_other_epochs_are_unchanged = PROGRAM.unchanged("whole", "error")


def test_fixed_release_is_unchanged():
    official, shim = PROGRAM.both("step", "2.6.6")
    assert shim.facts == official.facts and "lightning_patches: lightning" not in shim.output
