from tests.support.programs import Program, observes, sees

PROGRAM = Program("checkpoint-permission-error", "2.5.1")

DENIED = {
    "error": "PermissionError: [Errno 13] Access Denied: 'guarded://run/model.ckpt'",
    "written": False,
    "piped": [],
}
WRITTEN = {"error": None, "written": True, "piped": []}

test_release_before_the_bug_is_unchanged = PROGRAM.unchanged("save", check=sees(lambda seen: seen == DENIED))

test_writable_path_is_written = PROGRAM.unchanged("permitted", on=("2.5.2", "2.6.6"), check=observes(WRITTEN))
test_local_path_is_written = PROGRAM.unchanged("local", on=("2.6.6",), check=observes(WRITTEN))

test_subclass_of_the_azure_file_system_is_written_as_azure = PROGRAM.unchanged(
    "azure", on=("2.6.4", "2.6.6"), check=sees(lambda seen: seen == WRITTEN)
)

LOST = {"error": None, "written": False, "piped": []}
PROOFS = PROGRAM.proofs(observes(LOST), "save", "callback", recommended="by-hand", right=observes(DENIED))
