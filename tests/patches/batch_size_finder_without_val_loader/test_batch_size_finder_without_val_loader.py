from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("batch-size-finder-without-val-loader", "2.6.6", alone=True)
OTHER = Program("batch-size-finder-val-loader", "2.1.0", scenario="batch_size_finder_without_val_loader", alone=True)

test_module_without_a_validation_step_is_unchanged = PROGRAM.unchanged("train")
test_patch_for_validation_loaders_leaves_modules_without_one_unchanged = OTHER.unchanged("", "callback")

PROOFS = PROGRAM.proofs(
    ends_with("`val_dataloader` must be implemented to be used with the Lightning Trainer"),
    "",
    "callback",
    recommended="train",
    right=sees(lambda seen: seen["found"] == seen["trained"][-1] and seen["trained"][:3] == [2, 4, 8]),
)
