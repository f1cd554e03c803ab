from tests.support.programs import Program, observes

PROGRAM = Program("slurm-master-addr", "2.0.9", alone=True)

PROOFS = PROGRAM.proofs(
    observes({"address": "node3", "variable": "node3"}), right=observes({"address": "node3-ib", "variable": "node3-ib"})
)

FIRST_NODE = observes({"address": "node3", "variable": "node3"})
test_first_node_is_used_without_the_variable = PROGRAM.unchanged("unset", check=FIRST_NODE)
