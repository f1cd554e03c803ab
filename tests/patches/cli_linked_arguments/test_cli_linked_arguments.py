"""PR 20777: an argument that LightningCLI links on instantiation is not in the checkpoint."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def seen(case, shim=False, version="2.5.1"):
    result = run("cli_linked_arguments", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_nested_linked_argument_is_saved():
    assert seen("nested")["loaded"] == 0
    for case in ("", "subclass"):
        assert seen(case, shim=True)["saved"] == seen(case, version="2.5.2")["saved"]
    assert seen("nested", shim=True) == seen("nested", version="2.5.2")


@pytest.mark.parametrize("case", ["object", "parse"])
def test_checkpoint_is_unchanged(case):
    """An object that cannot be pickled is linked, or a link that was applied when the arguments were parsed."""
    assert seen(case) == seen(case, shim=True)


PROOFS = tuple(
    Proof(
        "cli-linked-arguments",
        sees(lambda seen: (seen["made"], seen["loaded"]) == (7, 0)),
        case=case,
        since=since,
        observed=only("made", "loaded"),
        right=sees(lambda seen: (seen["made"], seen["loaded"]) == (7, 7)),
    )
    # 2.3 saves a class in a form that cannot be loaded.
    for case, since in (("", ""), ("subclass", "2.4.0"))
)
