from tests.support.programs import Program, sees

PROGRAM = Program("checkpoint-overwritten", "2.1.2")

test_other_file_names_are_unchanged = PROGRAM.unchanged("monitor", "named")
test_file_of_each_epoch_is_unchanged = PROGRAM.unchanged(
    "all", check=sees(lambda seen: seen["seen"][-1] == {"best.ckpt": 2, "best-v1.ckpt": 4, "best-v2.ckpt": 6})
)


def test_file_that_training_was_resumed_from_is_kept():
    first, *_, last = PROGRAM.shim("resumed").facts["seen"][1:]
    assert first["best.ckpt"] == last["best.ckpt"] == 2
    assert set(last.values()) == {2, 8} and len(last) == 2


PROOFS = PROGRAM.proofs(sees(lambda seen: "best-v1.ckpt" in seen["seen"][2]))
