from tests.support.programs import Program, sees

PROGRAM = Program("warn-removed-hooks", "2.6.6")
ENDS = ("2.0.0", "2.6.6")

# Two epochs of two steps, with gradients of 1 and 2 in each.
right = sees(lambda seen: seen["weight"] == (-6.0).hex())
wrong = sees(lambda seen: seen["weight"] == (-10.0).hex())

test_uncalled_hook_of_the_model_causes_one_warning = PROGRAM.warns(
    "", "metaclass", says="never calls Old.on_epoch_end (instead: on_train_epoch_end", on=ENDS, check=wrong
)
test_uncalled_hook_of_a_callback_causes_one_warning = PROGRAM.warns(
    "callback", says="never calls Forgets.on_epoch_end (instead: on_train_epoch_end", on=ENDS, check=wrong
)
# Programs with the replacement, a stub in a base class, or a hook that another method or the script calls.
test_warning_is_absent_if_all_hooks_are_called = PROGRAM.unchanged("2.x", "others", "named", on=ENDS, check=right)


def test_program_continues_if_warnings_are_errors():
    result = PROGRAM.shim("error", distribution="pytorch-lightning")
    assert result.ok and wrong(result), result
    assert "lightning_patches: Lightning 2.x never calls Old.on_epoch_end" in result.output
