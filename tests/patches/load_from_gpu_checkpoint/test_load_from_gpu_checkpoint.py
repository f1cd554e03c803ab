from tests.support.programs import Program, ends_with, observes, sees

PROGRAM = Program("load-from-gpu-checkpoint", "2.0.9", alone=True)
LOADED = {"same": True, "device": "cpu", "done": True}

test_loadable_checkpoint_is_loaded_as_on_stock = PROGRAM.unchanged("cpu", "given", check=observes(LOADED))

test_wrapper_of_torch_load_gets_the_arguments_of_stock = PROGRAM.unchanged(
    "wrapped", check=observes({**LOADED, "map_location": None}), toggle="default"
)

REFUSED = ends_with("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False")
PROOFS = (
    PROGRAM.proof(REFUSED, right=sees(lambda seen: seen == LOADED)),
    PROGRAM.proof(REFUSED, case="datamodule", right=sees(lambda seen: seen["done"])),
)
