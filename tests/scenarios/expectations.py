"""What each scenario has to show: the bug in the stock arm, and what the other arms must agree on.

One :class:`Proof` per case of a scenario that takes part in the equivalence. A patch without a line here is not proven,
and a test says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

Observations = list[dict[str, Any]]


def everything(observations: Observations) -> Any:
    """All that was observed, of every rank."""
    return observations


@dataclass(frozen=True)
class Proof:
    """One case of one scenario.

    Args:
        patch: name of the patch; the scenario is the file of that name, with underscores.
        shows_bug: whether a run shows the bug as it was reported; gets its result (see ``tests/support/arms.py``).
        case: handed to the scenario.
        simulated_cuda: the case needs CUDA devices, simulated or real.
        observed: the part of the observations in which shim, fork and official release must agree, exactly.
        recommended: for a bug that upstream never fixed, the case that does what the maintainers recommend; it runs
            in the stock release and takes the place of the official arm.
        recommended_observed: the part of that run's observations that takes part in the comparison; ``observed`` if
            ``None``. Set it where the recommended usage is observed in the same run.
        recommended_environment: variables that make the recommended usage, where it is no matter of the program.
        since: first release whose API this case can be written against, where the patch's range begins earlier.
        note: why something was left out of the comparison, for the record.
    """

    patch: str
    shows_bug: Callable[[Any], bool]
    case: str = ""
    simulated_cuda: bool = False
    observed: Callable[[Observations], Any] = everything
    recommended: Optional[str] = None
    recommended_observed: Optional[Callable[[Observations], Any]] = None
    recommended_environment: tuple[tuple[str, str], ...] = ()
    since: str = ""
    note: str = ""

    @property
    def scenario(self) -> str:
        return self.patch.replace("-", "_")

    def __str__(self) -> str:
        return f"{self.patch}:{self.case}" if self.case else self.patch


def ends_with(message: str) -> Callable[[Any], bool]:
    """The program fails, and the message is in what the user reads."""

    def shows_bug(result: Any) -> bool:
        return not result.ok and message in result.output

    return shows_bug


def only(*names: str) -> Callable[[Observations], Any]:
    """These observations, of every rank."""
    return lambda observations: [{name: rank[name] for name in names} for rank in observations]


def sees(check: Callable[[dict[str, Any]], bool]) -> Callable[[Any], bool]:
    """What the first rank observed shows the bug; a program that observed nothing does not."""
    return lambda result: bool(result.observations) and check(result.observations[0])


def _masked(observations: Observations) -> Any:
    """How the errors arrive that stock hides, and that nothing else has changed."""
    hidden = ("workers", "several_loaders", "dataloader_iter")
    return [[rank[way] for way in hidden] + [rank["none"], rank["again"]] for rank in observations]


def _unmasked(observations: Observations) -> Any:
    """The same, from the way that the same error takes in stock when it is the validation loader's."""
    return [
        [rank["validation"]] * 3
        + [rank["none"], {**rank["again"], "first": rank["validation"]["error"].partition(":")[0]}]
        for rank in observations
    ]


def _refused(observations: Observations) -> Any:
    """Whether anything was imported or called, and by which kind of error loading ended; not its words."""
    return [{**rank, "loaded": [text.partition(":")[0] for text in rank["loaded"]]} for rank in observations]


def _ranks_differ(result: Any) -> bool:
    first = result.observations[:1]
    return any(rank != first[0] for rank in result.observations)


def _by_usage(usage: str) -> Callable[[Observations], Any]:
    """What a usage led to, in each part that was run in both."""
    return lambda observations: [
        {name: seen[usage] for name, seen in rank.items() if "recommended" in seen} for rank in observations
    ]


def _left_behind(observations: Observations) -> Any:
    """What a failed search has changed, and the error that arrived."""
    return [{name: rank[name] for name in ("error", "changed", "weights_changed", "files")} for rank in observations]


def _as_before(observations: Observations) -> Any:
    """Nothing, and the error of the user's own step. What each search is compared with is the state before it."""
    nothing: dict[str, Any] = {"changed": {}, "weights_changed": [], "files": []}
    return [{"error": "ValueError: the step broke", **nothing} for _ in observations]


def _in_one_set(observations: Observations) -> Any:
    """The items that all ranks together have drawn, sorted: the wrapper shuffles what the sampler gives."""
    return {
        "fit": [sorted(sum(epoch, [])) for epoch in zip(*(rank["fit"] for rank in observations))],
        "predict": sorted(sum((rank["predict"] for rank in observations), [])),
    }


def _moves(observations: Observations) -> Any:
    """The metrics of each fit, and whether anything was moved for them."""
    return [{fit: [max(seen["moves"]) > 0, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


def _without_moves(observations: Observations) -> Any:
    """The same metrics, and nothing moved."""
    return [{fit: [False, seen["metrics"]] for fit, seen in rank.items()} for rank in observations]


def _stuck(result: Any) -> bool:
    """Every epoch of fit with the same items, or predict with those of epoch 0."""
    if len(result.observations) < 2:
        return False
    seen = _in_one_set(result.observations)
    return bool(seen["fit"][0] == seen["fit"][1] or seen["predict"] == seen["fit"][0])


STEPS = [f"train {step}" for step in range(10)]
PROOFS = (
    Proof(
        "async-checkpoint-reuse",
        ends_with("cannot schedule new futures after shutdown"),
        case="fit",
    ),
    Proof(
        "async-checkpoint-snapshot",
        sees(lambda seen: seen["saved"]["weights"] != seen["asked_for"]["weights"]),
        observed=only("asked_for", "saved"),
        note="tied weights and module versions, which the official fix loses",
    ),
    Proof(
        "batch-size-finder-val-loader",
        sees(lambda seen: any(sum(sizes) < 64 for sizes in seen["validated"])),
    ),
    Proof(
        "checkpoint-instantiator",
        sees(lambda seen: seen["imported"] or bool(seen["called"])),
        case="function",
        observed=_refused,
        note="the words of the error, which name the way out of each",
    ),
    Proof(
        "checkpoint-instantiator",
        sees(lambda seen: seen["imported"] or bool(seen["called"])),
        case="datamodule",
        observed=_refused,
        note="the words of the error, which name the way out of each",
    ),
    Proof(
        "dataloader-error-unmasked",
        sees(lambda seen: "Please call `iter(combined_loader)` first." in (seen["workers"]["error"] or "")),
        observed=_masked,
        recommended_observed=_unmasked,
    ),
    Proof("ddp-static-graph-manual", _ranks_differ, case="static", recommended="plain"),
    Proof(
        "fabric-submodule-sync",
        lambda result: _by_usage("container")(result.observations) != _by_usage("recommended")(result.observations),
        case="access",
        observed=_by_usage("container"),
        recommended_observed=_by_usage("recommended"),
    ),
    Proof(
        "fabric-submodule-sync",
        lambda result: _by_usage("container")(result.observations) != _by_usage("recommended")(result.observations),
        case="gan",
        observed=_by_usage("container"),
        recommended_observed=_by_usage("recommended"),
    ),
    Proof(
        "init-module-data",
        sees(lambda seen: "Expected a 'cuda' device type for generator" in str(seen["inside"]["shuffled"]["error"])),
        case="ddp",
        simulated_cuda=True,
        observed=lambda ranks: [rank["inside"] for rank in ranks],
        recommended_observed=lambda ranks: [rank["outside"] for rank in ranks],
    ),
    Proof(
        "init-module-data",
        sees(lambda seen: "Expected a 'cuda' device type for generator" in str(seen["inside"]["shuffled"]["error"])),
        case="fabric",
        simulated_cuda=True,
        observed=lambda ranks: [rank["inside"] for rank in ranks],
        recommended_observed=lambda ranks: [rank["outside"] for rank in ranks],
    ),
    Proof(
        "log-metrics-without-move",
        sees(lambda seen: min(seen["first fit"]["moves"]) > 0),
        case="cpu",
        observed=_moves,
        recommended_observed=_without_moves,
    ),
    Proof(
        "logged-metrics-device",
        ends_with("No backend type associated with device type cpu"),
        case="lr_find",
        simulated_cuda=True,
    ),
    Proof(
        "logged-metrics-device",
        ends_with("No backend type associated with device type cpu"),
        case="fit_twice",
        simulated_cuda=True,
    ),
    Proof(
        "lr-finder-applies-lr",
        sees(lambda seen: seen["rates"][:1] != [[seen["attribute"]] * 2]),
        case="callback",
    ),
    Proof(
        "lr-finder-restarting-flag",
        sees(lambda seen: seen["events"][0] == "validate 0"),
        observed=lambda ranks: [[e for e in rank["events"] if e in STEPS or e == "validate 0"] for rank in ranks],
        note="later validations and weights: 2.3.0 has the bug of lr-finder-train-loader, which 2.0 has not",
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="callback",
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="shuffle",
    ),
    Proof(
        "lr-finder-val-loader",
        sees(lambda seen: any(count < 8 for count in seen["validated"])),
    ),
    Proof("sampler-set-epoch", _stuck, case="ddp", observed=_in_one_set, recommended="one"),
    Proof(
        "tuner-cleanup-on-error",
        sees(lambda seen: bool(seen["changed"])),
        case="lr_find",
        observed=_left_behind,
        recommended_observed=_as_before,
    ),
    Proof(
        "tuner-cleanup-on-error",
        sees(lambda seen: bool(seen["changed"])),
        case="scale_batch_size",
        observed=_left_behind,
        recommended_observed=_as_before,
    ),
    Proof(
        "tuner-temporary-checkpoint",
        ends_with("Weights only load failed"),
        case="lr_callback",
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    ),
    Proof(
        "tuner-temporary-checkpoint",
        ends_with("Weights only load failed"),
        case="scale_batch_size",
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    ),
    Proof(
        "worker-seed-sequence",
        sees(lambda seen: seen["seed 1"]["torch"][0] == seen["seed 1"]["torch"][1]),
        case="fork",
        observed=lambda ranks: [{seed: [v["torch"], v["python"]] for seed, v in rank.items()} for rank in ranks],
        note="NumPy's numbers: 2.4.0 takes them from another sequence than 2.6.1",
    ),
)
