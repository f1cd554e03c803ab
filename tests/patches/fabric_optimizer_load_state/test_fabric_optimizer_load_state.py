from tests.differential.trial import difference
from tests.equivalence.proof import proofs, sees

RATE = (0.01).hex()


def begins_anew(seen):
    return seen["resumed"] != seen["uninterrupted"] and (seen["shown"], seen["used"]) == (RATE, (9.0).hex())


def goes_on(seen):
    rates = seen["shown"], seen["used"], seen["set_later"]
    return seen["resumed"] == seen["uninterrupted"] and rates == (RATE, RATE, (0.5).hex())


def test_wrapping_optimizer_steps():
    assert not difference("wrapping_optimizer", "2.0.0", "fabric-optimizer-load-state")


PROOFS = proofs("fabric-optimizer-load-state", sees(begins_anew), right=sees(goes_on))
