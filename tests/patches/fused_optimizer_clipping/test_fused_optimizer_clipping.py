from lightning_patches.patch import Need
from tests.support.programs import Program, ends_with

PROGRAM = Program("fused-optimizer-clipping", "2.6.6", alone=True)

MESSAGE = "does not allow for gradient clipping because it performs unscaling of gradients internally"
PROOFS = tuple(
    PROGRAM.proof(ends_with(MESSAGE), case=case, recommended=recommended, needs=(Need("torch.optim:SGD", "fused"),))
    for case, recommended in (("fused", "by_hand"), ("value", "value_by_hand"))
)

test_gradients_are_clipped_in_manual_optimization = PROGRAM.fixed("manual", bug=ends_with(MESSAGE))

test_manual_clipping_is_unchanged = PROGRAM.unchanged("by_hand", "value_by_hand", toggle="default")
