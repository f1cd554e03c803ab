from tests.support.programs import Program, observes, sees

PROGRAM = Program("checkpoint-name-similar-metrics", "2.0.0")

ERROR = "ValueError: Only '.' or '[' may follow ']' in format field specifier"
NAMES = {
    "{epoch}-{epoch_loss:.2f}": ["epoch=0-epoch_loss=0.25.ckpt", "epoch=1-epoch_loss=0.25.ckpt"],
    "{epoch}-{epoch_loss:.2f}-{none}": ["epoch=0-epoch_loss=0.25-none=0.ckpt", "epoch=1-epoch_loss=0.25-none=0.ckpt"],
    "plain:{epoch}-{epoch_loss:.2f}": ["0-0.25.ckpt", "1-0.25.ckpt"],
    "{loss:.2f}-{loss/train:.2f}": ["loss=0.75-loss/train=0.50-v1.ckpt", "loss=0.75-loss/train=0.50.ckpt"],
}

test_correct_names_are_unchanged = PROGRAM.unchanged(
    "",
    "{loss/train:.2f}-{loss:.2f}",
    "{epoch}-{step}-{loss:.2f}",
    "{epoch}-{epoch}",
    check=sees(lambda seen: seen["error"] is None and len(seen["files"]) == 2),
)

PROOFS = tuple(
    PROGRAM.proof(observes({"error": ERROR, "files": []}), case=case, right=observes({"error": None, "files": names}))
    for case, names in NAMES.items()
)
