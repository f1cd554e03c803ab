import pytest

from tests.support.programs import Program, observes

PROGRAM = Program("sigterm-exit-status", "2.6.6", alone=True)
test_rank_with_status_143_does_not_kill_the_others = pytest.mark.distributed(
    PROGRAM.fixed(
        "ranks",
        on=("2.5.1",),
        bug=observes({"status": 0, "cleaned_up": True}),
        right=observes({"status": 143, "cleaned_up": True}),
    )
)
test_message_of_the_script_is_kept = PROGRAM.unchanged("message", check=observes({"status": 1, "cleaned_up": True}))

PROOFS = PROGRAM.proofs(
    observes({"status": 0, "cleaned_up": True}),
    "single",
    recommended="caught",
    right=observes({"status": 143, "cleaned_up": True}),
)
