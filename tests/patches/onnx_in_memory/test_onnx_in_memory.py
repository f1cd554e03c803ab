from tests.support.programs import Program, observes

PROGRAM = Program("onnx-in-memory", "2.4.0", alone=True)

test_path_is_written_as_on_stock = PROGRAM.unchanged("path")
test_missing_input_is_refused_as_on_stock = PROGRAM.unchanged("nothing", ends_well=False)


def _with(text, files):
    return observes({"buffer": text, "files": files, "training": True, "moved": 1})


PROOFS = tuple(
    PROGRAM.proof(_with("", 1), case=case, right=_with(f"[{size}, 32] False {{'verbose': False}}", 0))
    for case, size in (("buffer", 1), ("example", 2))
)
