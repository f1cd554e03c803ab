"""PR 18238: with ddp_spawn on the CPU, the ranks share the very parameters."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(version, case, shim=False):
    result = run("spawned_parameters", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return [{name: float.fromhex(value) for name, value in rank.items()} for rank in result.observations]


def test_script_sees_the_parameters_of_one_process():
    assert seen("2.0.7", "one") == seen("2.0.7", "one", shim=True)


def test_model_has_no_more_parameter_calls_than_on_stock():
    stock, shim = (seen("2.0.7", "asked", shim) for shim in (False, True))
    assert [rank["asked"] for rank in shim] == [rank["asked"] for rank in stock]


SHARED = sees(lambda seen: seen["weight"] == (3.0).hex())
PROOFS = tuple(Proof("spawned-parameters", SHARED, case=case) for case in ("trainer", "fabric"))
