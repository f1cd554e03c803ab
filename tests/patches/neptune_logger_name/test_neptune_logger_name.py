"""PR 21572: a package imports NeptuneLogger at its top."""

from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run

PROOFS = (Proof("neptune-logger-name", ends_with("has no attribute 'NeptuneLogger'"), recommended="module"),)


def test_first_use_reports_the_removal():
    result = run("neptune_logger_name", Variant("lightning", "2.6.6", shim=True), "use", toggle="neptune-logger-name")
    assert not result.ok and "sunset" in result.observations[0]["error"], result


def test_other_names_are_missing_as_on_stock():
    result = run("neptune_logger_name", Variant("lightning", "2.6.6", shim=True), "other", toggle="neptune-logger-name")
    assert not result.ok and "no attribute 'SaturnLogger'" in result.observations[0]["error"], result


def test_import_in_try_except_works_as_on_stock():
    """It is opt-in."""
    assert not run("neptune_logger_name", Variant("lightning", "2.6.6", shim=True)).ok
