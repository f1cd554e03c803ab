import pytest

from tests.support.programs import Program, ends_with, observes

PROGRAM = Program(
    "import-without-pkg-resources", "1.9.5", scenario="import_without_pkg_resources_1x", options={"fresh": True}
)

VERSIONS = ["1.5.10", "1.6.5", "1.7.7", "1.8.6", "1.9.5"]

test_lightning_is_imported_and_trains = PROGRAM.fixed(
    on=VERSIONS, bug=ends_with("No module named 'pkg_resources'"), right=observes({"steps": 4, "others_have": []})
)


@pytest.mark.parametrize("version", ["1.6.5", "1.9.5"])
def test_installed_pkg_resources_is_used(version):
    shim = PROGRAM.shim("there", version)
    assert shim.ok, shim
    assert shim.observations == [{"steps": 4, "others_have": ["pkg_resources"]}]
