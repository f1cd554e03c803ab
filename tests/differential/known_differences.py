"""Known differences: the changes that a patch makes on purpose in a working program.

The record of the patch (`changes_results`) describes them.
"""

from lightning_patches.patches import all_patches

NUMBERS = r"state |logged |saw (?!raised)|call \w+\.(log_metrics|log_dict|log|step|save_checkpoint|training_step)\("
"""Lines that show different numbers: weights, metrics, arguments."""
BYPASSES = "warning PossibleUserWarning You are calling the method"
"""2.0 and 2.1 warn where a method of a Fabric module bypasses DistributedDataParallel, which it no longer does."""

BEGINS: dict[str, str] = {
    "accumulation-across-validation": r"state gradients ",
    "accumulation-without-batch-idx": r"call \w+\.on_before_backward|state |saw ",
    "batch-size-finder-val-loader": r"call |saw validation_step|message ",
    "checkpoint-kept-on-resume": r"file \S+\.ckpt|state \w+ files |call \w+\.remove_checkpoint",
    "checkpoint-permission-error": r"call .*on_exception|(end raises|saw raised =) (Permission|FileNotFound)Error",
    "dataloader-check-without-iterating": rf"{NUMBERS}|call \w+\.\w+\(\w+\([0-9a-f]{{12}}\)\)",
    "dataloader-error-unmasked": r"end raises (RuntimeError: Please call `iter|TypeError: iter)",
    "ddp-static-graph-manual": r"state ",
    "fabric-mark-forward-method": rf"{BYPASSES}|saw (gradients|loss)",
    "fabric-submodule-sync": rf"{BYPASSES}|saw (gradients|loss|norm|iterable \d|attributes \d)|state step",
    "fit-resets-should-stop": r"call |state |saw |message ",
    "frozen-batch-norm": r"state gradients |call SGD\.",
    "logged-number-precision": rf"warning UserWarning You called `self\.log|{NUMBERS}",
    "logged-tensor-precision": NUMBERS,
    "lr-finder-applies-lr": r"state ",
    "lr-finder-restarting-flag": NUMBERS,
    "lr-finder-train-loader": rf"{NUMBERS}|call DataLoader\.check_worker_number_rationality",
    "lr-finder-val-loader": NUMBERS,
    "tuner-cleanup-on-error": r"message INFO Restor|call \w+\.(load_checkpoint|load_state_dict|on_exception)\("
    r"|file \S*\.(lr_f|scale_b)|saw datamodule state = |state \w+ files "
    r"|warning LightningPatchesWarning .* a finder failed",
    "validation-after-short-epoch": r"call \w+\.on_validation_model_eval|state on_validation_start|saw validation_step",
}
"""The lines with which a program begins to do something else; what follows are consequences."""

ONLY: dict[str, str] = {
    "csv-logger-hparams-once": r"call LocalFileSystem\.",
    "fabric-mark-forward-method": r"saw names \d = ",
    "sigterm-at-batch-boundary": r"call (object of )?LightningEnvironment\.\w+\(",
    "trusted-checkpoint-load": r"warning LightningPatchesWarning \S+ holds objects that torch does not load by default",
    **{patch.name: r"warning LightningPatchesWarning " for patch in all_patches() if patch.warns},
}
"""All lines that differ."""

DECLARED = {*BEGINS, *ONLY}
