"""Issue 17550: the address where ranks meet under SLURM."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

PROOFS = (
    Proof(
        "slurm-master-addr",
        observes({"address": "node3", "variable": "node3"}),
        right=observes({"address": "node3-ib", "variable": "node3-ib"}),
    ),
)


def test_first_node_is_used_without_the_variable():
    variants = [Variant("pytorch-lightning", "2.0.9", shim) for shim in (False, True)]
    seen = [run("slurm_master_addr", variant, "unset", toggle="slurm-master-addr").observations for variant in variants]
    assert seen == [[{"address": "node3", "variable": "node3"}]] * 2


def test_patch_is_opt_in():
    seen = run("slurm_master_addr", Variant("pytorch-lightning", "2.0.9", shim=True)).observations
    assert seen == [{"address": "node3", "variable": "node3"}]
