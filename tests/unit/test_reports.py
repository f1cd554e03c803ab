"""Each upstream report that was tried has a verdict, and the patches that it names list its number."""

from lightning_patches import patches as catalogue
from lightning_patches.engine.fingerprints import known_releases
from tests.support.variants import ROOT

LINES = [
    [cell.strip() for cell in line.split("|")]
    for line in (ROOT / "upstream" / "reports.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def test_each_report_has_a_true_verdict() -> None:
    assert len(LINES) > 15
    numbers = [int(number) for number, *_ in LINES]
    assert numbers == sorted(set(numbers), reverse=True)
    for number, release, verdict, showed in LINES:
        kind, _, names = verdict.partition(": ")
        assert kind in ("fixed", "warned", "open", "left out", "not ours", "not reproduced"), verdict
        assert release in known_releases() and showed, number
        for name in names.split(", ") if kind in ("fixed", "warned") else ():
            (patch,) = catalogue.find(name)
            assert int(number) in patch.numbers and patch.warns is (kind == "warned"), (number, name)
