import pytest

from tests.support.programs import Program

pytestmark = pytest.mark.distributed
PROGRAM = Program("hydra-output-directory", "2.0.6", alone=True, options={"timeout": 300})


@pytest.mark.parametrize("case", ["chdir", "drawn"])
def test_ranks_that_change_directory_keep_their_directory(case):
    """Hydra's files are those of rank zero, not those of the last rank."""
    stock, shim = (result.observations for result in PROGRAM.both(case))
    for ranks, job in ((stock, "train_ddp_process_1"), (shim, "hydra_output_directory")):
        assert [rank.pop("job") for rank in ranks] == [job, job]
    assert shim == stock
    assert [rank["works_in"] for rank in shim] == ["results/drawn" if case == "drawn" else "results/first"] * 2


def saved_by_rank_one(result):
    """True if rank one has written Hydra's files, or its output directory is the start directory."""
    ranks = result.observations
    return len(ranks) == 2 and (ranks[1]["output"] == "" or ranks[0]["job"] == "train_ddp_process_1")


def one_directory(result):
    """True if all files of both ranks are in one directory."""
    files = [".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "hydra_output_directory.log"]
    files = [f"results/first/{file}" for file in (*files, "result0.txt", "result1.txt", "train_ddp_process_1.log")]
    return [(rank["output"], rank["files"], rank["job"]) for rank in result.observations] == [
        ("results/first", files, "hydra_output_directory")
    ] * 2


PROOFS = PROGRAM.proofs(saved_by_rank_one, "", "chdir", "fabric", right=one_directory)
