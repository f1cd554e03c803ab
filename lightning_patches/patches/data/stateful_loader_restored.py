"""A resumed run restores the state of a stateful DataLoader."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        original(self)
        # The original returns at once if the loader was set up before the checkpoint was loaded.
        if self._combined_loader_states_to_load:
            self._load_combined_loader_states()

    return setup_data


PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "a resumed run continues with the data that was not used yet"),
    affected=(">=2.2.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data),),
    upstream=Upstream(issues=(20550,), pull_requests=(21765, 21770)),
    impact=Impact(
        "If configure_optimizers reads trainer.estimated_stepping_batches, a resumed run does not restore the "
        "state of a stateful DataLoader: it starts over with data that was already used.",
        ("load_state_dict of a stateful dataloader is not called on resume",),
    ),
    opt_in="users who resume with a stateful data loader and read trainer.estimated_stepping_batches",
    signs=("estimated_stepping_batches ckpt_path",),
    note="Opt-in because programs restore the state themselves. Runs that already restore the state, or are "
    "not resumed, are unchanged. If a script sets the loader's state before fit to work around the bug, "
    "the state in the checkpoint takes precedence. Without the patch, don't read "
    "estimated_stepping_batches in configure_optimizers.",
    after=("interval-without-validation",),
)
