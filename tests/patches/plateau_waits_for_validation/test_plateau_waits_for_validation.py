from tests.support.programs import Program, sees

PROGRAM = Program("plateau-waits-for-validation", "2.6.6", "pytorch-lightning")

ERROR = "MisconfigurationException: ReduceLROnPlateau conditioned on metric {} which is not available"
RELEASES = ["2.0.0", "2.6.6"]


def test_resumed_training_also_waits():
    shim = PROGRAM.shim("resumed").facts
    assert (shim["error"], [epoch for epoch, *_ in shim["steps"]]) == (None, [3, 5])


def test_scheduler_does_not_wait_for_a_training_metric_that_a_checkpoint_lacks():
    shim = PROGRAM.shim("lost").facts
    assert (shim["error"], [epoch for epoch, *_ in shim["steps"]]) == (None, [3, 4, 5])


def test_scheduler_of_a_training_metric_steps_in_every_epoch():
    called = [(epoch, mode) for epoch, mode, _ in PROGRAM.shim("two").facts["steps"]]
    assert called == [(epoch, mode) for epoch in range(6) for mode in (("min",) if epoch % 2 else ()) + ("max",)]


test_scheduler_with_its_metric_is_unchanged = PROGRAM.unchanged(
    "trained",
    "lenient",
    "stale",
    "by hand",
    "asked",
    on=RELEASES,
    check=sees(lambda seen: (seen["error"], seen["epochs"]) == (None, 6)),
)


def test_metric_that_is_never_logged_is_an_error():
    for case, name, epochs in (("misspelled", "vall", 1), ("off", "val", 0)):
        shim = PROGRAM.shim(case).facts
        assert shim["error"].startswith(ERROR.format(name)) and shim["epochs"] == epochs


PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["error"] or "").startswith(ERROR.format("val")) and seen["steps"] == []),
    "waits",
    recommended="by hand",
    right=sees(lambda seen: [epoch for epoch, *_ in seen["steps"]] == [1, 3, 5]),
)
