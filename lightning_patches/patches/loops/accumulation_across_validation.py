"""A validation keeps accumulated gradients."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, *arguments: Any, **named: Any) -> None:
        trainer = self.trainer
        state = getattr(trainer, "state", None)  # a stand-in may have none
        without = state is None or state.fn != "fit" or trainer.accumulate_grad_batches == 1
        if without or not trainer.fit_loop._should_accumulate():  # this check includes the strategy and custom loops
            original(self, *arguments, **named)
            return
        attributes = vars(trainer.lightning_module)
        had = {name: attributes[name] for name in ("zero_grad",) if name in attributes}

        def put_back(*args: Any, **kwargs: Any) -> None:
            attributes.pop("zero_grad", None)
            attributes.update(had)

        # Replace only the first call, with which the loop starts. Hooks that run later get the real method.
        attributes["zero_grad"] = put_back
        try:
            original(self, *arguments, **named)
        finally:
            if attributes.get("zero_grad") is put_back:
                put_back()

    return on_run_start


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "gradients from before a validation are kept"),
    affected=(">=1.8.0,<2.1.0",),
    targets=(
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop.on_run_start", _on_run_start, since="2.0.0"),
        Target("pytorch.loops.dataloader.evaluation_loop:EvaluationLoop.on_run_start", _on_run_start, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(18710,),
        commit="a26424e89e",
        fixed_in="2.1.0",
        tests=("tests/tests_pytorch/loops/test_loops.py::test_validation_during_gradient_accumulation_window",),
    ),
    impact=Impact(
        "With accumulate_grad_batches, a validation in the middle of an accumulation discards the gradients "
        "accumulated so far.",
        ("gradients are zero after validation", "accumulate_grad_batches with val_check_interval"),
    ),
)
