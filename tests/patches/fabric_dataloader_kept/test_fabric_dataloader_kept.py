from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("fabric-dataloader-kept", "2.0.9", alone=True)

test_other_loaders_are_unchanged = PROGRAM.unchanged("plain")
test_loaders_of_two_ranks_are_unchanged = PROGRAM.unchanged("ranks", check=lambda result: len(result.observations) == 2)

PROOFS = (
    PROGRAM.proof(
        observes({"batches": [[0, 1], [2, 3]], "sampler": "SequentialSampler"}),
        case="lost",
        right=observes({"batches": [[0, 3], [6, 9]], "sampler": "SequentialSampler"}),
    ),
    PROGRAM.proof(ends_with("Trying to inject custom `Sampler` into the `Sized` instance"), case="refused"),
)
