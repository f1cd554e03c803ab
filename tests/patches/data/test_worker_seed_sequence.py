import pytest

from tests.support.programs import Program

PROGRAM = Program("worker-seed-sequence", "2.6.1")


def numbers(result):
    """``{"torch": [seed 1 epoch 0, seed 1 epoch 1, seed 2 epoch 0, ...], "numpy": ..., "python": ...}``"""
    assert result.ok, result
    seeds = [result.observations[0][seed] for seed in sorted(result.observations[0])]
    return {name: [epoch for seed in seeds for epoch in seed[name]] for name in ("torch", "numpy", "python")}


def different(draws):
    """Return the number of epochs that differ from all others."""
    return len({tuple(epoch) for epoch in draws})


@pytest.fixture(scope="module")
def official():
    cases = {}

    def get(case):
        if case not in cases:
            cases[case] = numbers(PROGRAM.stock(case))
        return cases[case]

    return get


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [("lightning", "2.4.0", "fork"), ("lightning", "2.6.0", "fork"), ("pytorch-lightning", "2.5.0", "spawn")],
)
def test_each_epoch_and_seed_draws_different_numbers(distribution, version, case, official):
    stock = numbers(PROGRAM.stock(case, version, distribution=distribution))
    assert different(stock["torch"]) == 1, stock

    patched = PROGRAM.shim(case, version, distribution=distribution)
    shim = numbers(patched)
    assert shim["torch"] == official(case)["torch"]
    assert shim["python"] == official(case)["python"]
    assert all(different(epochs) == len(epochs) >= 2 for epochs in shim.values()), shim
    if version == "2.4.0":
        assert different(stock["numpy"]) == 1, stock
    else:
        assert shim["numpy"] == stock["numpy"] == official(case)["numpy"]
    announced = [line for line in patched.output.splitlines() if "random augmentation differs" in line]
    assert len(announced) == 1, patched
