"""PR 18238: with ddp_spawn on the CPU, the ranks share the very parameters."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(version, case, shim=False):
    result = run("spawned_parameters", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return [{name: float.fromhex(value) for name, value in rank.items()} for rank in result.observations]


def test_the_script_sees_what_one_process_has_done():
    assert seen("2.0.7", "one") == seen("2.0.7", "one", shim=True)


def test_a_model_is_asked_for_its_parameters_as_often_as_on_stock():
    stock, shim = (seen("2.0.7", "asked", shim) for shim in (False, True))
    assert [rank["asked"] for rank in shim] == [rank["asked"] for rank in stock]


SHARED = sees(lambda seen: seen["weight"] == (3.0).hex())
PROOFS = tuple(Proof("spawned-parameters", SHARED, case=case) for case in ("trainer", "fabric"))
