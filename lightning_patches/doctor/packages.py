"""Checks of the installed packages."""

from __future__ import annotations

import shlex
from typing import Iterator

from lightning_patches import patches as catalogue
from lightning_patches.doctor import script
from lightning_patches.doctor.facts import IMPORTED_AT_ONCE, Facts
from lightning_patches.doctor.findings import Finding, Severity
from lightning_patches.engine import toggle
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.engine.words import asks_for_patches
from lightning_patches.errors import ToggleError
from lightning_patches.known.unpatched import ADVICE, ADVISORY, WITH_PKG_RESOURCES
from lightning_patches.notices import cut

NO_PKG_RESOURCES_SINCE = "2.4.0"
"""First Lightning release that can be imported without ``pkg_resources``."""
PKG_RESOURCES_PATCH = "import-without-pkg-resources"
"""The patch with which older releases can be imported without ``pkg_resources``."""


def compromised_release(facts: Facts) -> Iterator[Finding]:
    """A compromised release is installed. It is recognized by its metadata, and not imported."""
    for one in facts.lightnings:
        if one.forbidden:
            yield Finding(
                "compromised-release",
                "error",
                f"{one.distribution} {one.version} is installed",
                f"2.6.2 and 2.6.3 were compromised on PyPI and run hostile code when they are imported ({ADVISORY}).",
                f"{ADVICE[0].upper()}{ADVICE[1:]}.",
            )


def broken_import(facts: Facts) -> Iterator[Finding]:
    """The import of Lightning is known to fail with the installed packages."""
    for one in facts.lightnings:
        if one.broken is not None:
            subject = f"{one.distribution} {one.version} cannot be imported"
            yield Finding("broken-import", "error", subject, f"{one.broken.why}.", f"{one.broken.do}.")


def missing_packages(facts: Facts) -> Iterator[Finding]:
    """A package that Lightning requires is not installed."""
    for by in dict.fromkeys(one.by for one in facts.missing):
        missing = [one for one in facts.missing if one.by == by]
        names = [one.name for one in missing]
        yield Finding(
            "missing-packages",
            "error" if {*names} & {*IMPORTED_AT_ONCE} else "warning",
            f"{by} requires {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} not installed",
            'The import of Lightning, or of a part of it, ends with "No module named ...". The packages were '
            "uninstalled, or Lightning was installed with `--no-deps`.",
            f"Run `pip install {' '.join(shlex.quote(one.requirement) for one in missing)}` in the environment that "
            "you train in.",
        )


def two_lightnings(facts: Facts) -> Iterator[Finding]:
    """``lightning`` and ``pytorch_lightning`` are installed in different versions."""
    versions = {one.version for one in facts.lightnings}
    if len(versions) > 1:
        yield Finding(
            "two-lightnings",
            "warning",
            "installed: " + ", ".join(f"{one.distribution} {one.version}" for one in facts.lightnings),
            "For Python, these are separate packages: the Trainer of one refuses callbacks and modules of the other, "
            "and a library may train with another release than the script. `pip install lightning==X` also installs "
            "the newest pytorch-lightning.",
            "Import only one of them, and pin both to the same version.",
        )


def pkg_resources(facts: Facts) -> Iterator[Finding]:
    """Lightning below 2.4.0 imports ``pkg_resources``, which setuptools 82 no longer has."""
    if facts.has_pkg_resources:
        return
    enabled = _how_import_is_fixed(facts)
    for one in facts.lightnings:
        if _older(one.version, NO_PKG_RESOURCES_SINCE):
            what = f"{one.distribution} {one.version} imports pkg_resources, which is not installed"
            why = "`import lightning` ends with \"No module named 'pkg_resources'\": setuptools 82 no longer has it"
            if enabled:
                do = "Nothing, unless another module imports Lightning earlier, or an unpatched Python imports it."
                yield Finding("pkg-resources", "note", what, f"{why}. {enabled}.", do)
            else:
                yield Finding(
                    "pkg-resources",
                    "error",
                    what,
                    f"{why}.",
                    "Put `import lightning_patches` above the import of Lightning, install "
                    f"{WITH_PKG_RESOURCES}, or upgrade Lightning to {NO_PKG_RESOURCES_SINCE}.",
                )


def patches_import(facts: Facts) -> Iterator[Finding]:
    """The script does not import ``lightning_patches``, or a linter or lazy import could disable its import."""
    spec = facts.environment.get(toggle.VARIABLE)
    if (facts.autostart and spec) or (spec and not asks_for_patches(spec)):
        return
    why = {
        script.UNPATCHED: "It trains without the fixes, unless `lightning-patches run` starts it or another module "
        "has the import.",
        script.LATE: 'Errors that occur while Lightning is imported are not fixed, such as "No module named '
        "'pkg_resources'\" below Lightning 2.4.0.",
        script.REMOVABLE: "`ruff --fix` deletes an unused import, and isort moves it below Lightning.",
        script.LAZY: "Python 3.15 delays a lazy import until the script uses it. This script never does, so it trains "
        "without the fixes.",
    }
    for kind, _, text in facts.script:
        if kind in why:
            do = f"Write `{script.IMPORT}` above the imports of Lightning{', without `lazy`' * (kind == script.LAZY)}"
            if kind != script.UNPATCHED:
                do += ", or call `lightning_patches.activate()` below the imports, which formatters leave unchanged"
            severity: Severity = "warning" if kind == script.LAZY else "note"
            yield Finding("patches-import", severity, f"the script {text}", why[kind], f"{do}.")


def _how_import_is_fixed(facts: Facts) -> str:
    """Return a sentence that names what enables :data:`PKG_RESOURCES_PATCH`; "" if it is not enabled."""
    spec = facts.environment.get(toggle.VARIABLE)
    try:
        selected = toggle.parse(spec, catalogue.all_patches()).names
    except ToggleError:
        return ""
    if PKG_RESOURCES_PATCH not in selected:
        return ""
    if facts.autostart and asks_for_patches(spec):
        return f"The patches fix it: autostart is enabled, and {toggle.VARIABLE}={cut(spec or '')}"
    line = next((line for kind, line, _ in facts.script if kind == script.PATCHED), None)
    return f"The patches fix it: the script imports lightning_patches in line {line}" if line else ""


def torch_unusable(facts: Facts) -> Iterator[Finding]:
    """torch is installed but can't be imported."""
    for one in facts.unknown:
        if one.what == "torch":
            yield Finding(
                "torch-unusable",
                "error",
                f"torch {facts.packages.get('torch', '')} cannot be used: {one.why}",
                "Every rank imports torch first, and will hang or fail in the same way.",
                'Run `python -X importtime -c "import torch"`. Look for a slow network file system or a broken '
                "driver. Reinstall torch if its files are damaged.",
            )


def pinned_packages(facts: Facts) -> Iterator[Finding]:
    """NVIDIA's packages are not in the versions that torch was built with."""
    wrong = [
        f"{name} {facts.pinned_installed[name]} (torch requires {version})"
        for name, version in facts.pinned.items()
        if facts.pinned_installed.get(name, version) != version
    ]
    if wrong:
        yield Finding(
            "pinned-packages",
            "warning",
            "installed: " + ", ".join(wrong),
            "torch loads these libraries. Another version of NCCL, cuBLAS or cuDNN may hang in a collective, or fail "
            "to load.",
            "Reinstall torch with its dependencies, or pin these packages to the versions that it requires.",
        )


def model_hooks(facts: Facts) -> Iterator[Finding]:
    """accelerate and bitsandbytes add hooks to models. These hooks move inputs between devices."""
    present = [f"{name} {facts.packages[name]}" for name in ("accelerate", "bitsandbytes") if name in facts.packages]
    if not present:
        return
    patches = " and ".join(patch.name for patch in catalogue.find("20276"))
    patched = f" (the patch {patches} corrects the hooks)" if patches else ""
    yield Finding(
        "model-hooks",
        "note",
        f"{', '.join(present)} {'is' if len(present) == 1 else 'are'} installed",
        "A model that is loaded with `device_map`, `load_in_8bit` or `load_in_4bit` has hooks that move its inputs to "
        'one fixed device. Under DDP every rank needs another device: "Expected all tensors to be on the same device" '
        "(issue 20276).",
        f'Load it with device_map={{"": local_rank}}, or without device_map{patched}.',
    )


def accelerate_launch(facts: Facts) -> Iterator[Finding]:
    """The script is started by ``accelerate launch``, whose settings Lightning does not read."""
    found = sorted(name for name in facts.environment if name.startswith("ACCELERATE_"))
    if found:
        yield Finding(
            "accelerate-launch",
            "warning",
            f"variables of `accelerate launch` are set: {', '.join(found[:4])}{' ...' if len(found) > 4 else ''}",
            "Lightning starts ranks itself and does not read these variables. Their mixed precision, FSDP or DeepSpeed "
            "settings are not applied, or are applied twice.",
            "Start the script with `python` or `torchrun`, and pass these settings to Trainer or Fabric.",
        )


def _older(version: str, than: str) -> bool:
    from packaging.version import InvalidVersion

    try:
        return in_ranges(version, (f"<{than}",))
    except InvalidVersion:
        return False


CHECKS = (
    compromised_release,
    missing_packages,
    broken_import,
    torch_unusable,
    pkg_resources,
    two_lightnings,
    patches_import,
    pinned_packages,
    accelerate_launch,
    model_hooks,
)
