"""PR 18567: CSVLogger writes its whole file at each line."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("version", ["2.0.0", "2.0.9"])
@pytest.mark.parametrize("case", ["columns", "touched"])
def test_file_is_the_same(version, case):
    """Also with a column that is added later, and if another process has written the file."""
    stock, shim = (run("csv_logger_appends", Variant("pytorch-lightning", version, s), case) for s in (False, True))
    assert stock.ok, stock
    assert len(stock.observations[0]["rows"]) == 8
    assert stock.observations[0]["rows"] == shim.observations[0]["rows"]


PROOFS = (
    Proof(
        "csv-logger-appends",
        sees(lambda seen: seen["again"] and len(seen["rows"]) == 60),
        right=sees(lambda seen: not seen["again"] and len(seen["rows"]) == 60),
    ),
)
