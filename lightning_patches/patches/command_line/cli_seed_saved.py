"""LightningCLI saves the seed that it chose."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _set_seed(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _set_seed(self: Any) -> None:
        original(self)
        if self.subcommand and self.config[self.subcommand].get("seed_everything") is True:
            # LightningCLI stores the chosen seed beside the subcommand's section, but saves only that section.
            self.config[self.subcommand]["seed_everything"] = self.config.pop("seed_everything")

    return _set_seed


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "the seed in config.yaml"),
    affected=(">=1.8.0,<2.0.6",),
    targets=(Target("pytorch.cli:LightningCLI._set_seed", _set_seed),),
    upstream=Upstream(
        pull_requests=(18056,),
        commit="e38c71b828",
        fixed_in="2.0.6",
        tests=("tests/tests_pytorch/test_cli.py::test_lightning_cli_save_config_seed_everything",),
    ),
    impact=Impact(
        "With --seed_everything=true LightningCLI draws a random seed, but saves `true` in config.yaml: the run "
        "cannot be repeated.",
        ("config.yaml has seed_everything: true",),
    ),
    note="A seed that you pass is saved as without the patch.",
)
