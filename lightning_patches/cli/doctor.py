"""Find causes of failures and hangs before training starts: drivers, GPUs, launchers, ports, memory, packages.

torch is imported in another process, with a time limit. GPUs are queried through the driver's library or nvidia-smi.
Lightning is not imported. With SCRIPT, the training script is also read, but not run. Run the command in the shell, job
or container in which training starts; on a cluster, as a task of the job.

With --json, one object (later versions may add keys):
  schema    1
  findings  [{check, severity ("error", "warning", "note"), what, why, do}], the most serious first
  checks    [names of all checks]
  unknown   [facts that could not be determined, and why]
  facts     the examined facts; of the environment only variables of launchers, CUDA, NCCL, Gloo, OpenMP and accelerate
  ok        the exit status is 0

exit status: 0 only notes, 1 an error or a warning; with --strict 1 also for notes and unknown facts.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
from typing import Any

from lightning_patches import doctor as checks
from lightning_patches.cli import _files, _output, autostart
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UsageError
from lightning_patches.doctor import Finding, devices, machine, script
from lightning_patches.doctor.facts import Facts

HELP = "find causes of failures and hangs of training in this environment"

_SHOWN_VARIABLES = (
    "RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "SLURM_JOB_NAME",
    "SLURM_N", "SLURM_PROCID", "SLURM_STEP", "SLURM_LOCALID", "TORCHELASTIC_", "PET_", "OMPI_COMM_", "PMI_", "CUDA_",
    "NCCL_", "TORCH_NCCL_", "GLOO_", "OMP_NUM_THREADS", "ACCELERATE_",
)  # fmt: skip


_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="a training script to check")
    parser.add_argument("--no-torch", action="store_true", help="do not start a Python that imports torch")
    parser.add_argument(
        "--timeout",
        type=float,
        default=devices.TORCH_TIMEOUT,
        metavar="SECONDS",
        help="time limit for torch (default: %(default).0f)",
    )
    parser.add_argument("--strict", action="store_true", help="end with status 1 also for notes and unknown facts")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    if args.timeout <= 0:
        raise UsageError("--timeout takes a number of seconds above 0.")
    places: tuple[tuple[str, int, str], ...] = ()
    if args.script is not None:
        source = _files.read(args.script, _files.MAX_SCRIPT)
        with _files.parsing(args.script):
            places = tuple(script.look_through(source, multiprocessing.get_all_start_methods()[0]))  # the default
    found = machine.gather(
        ask_torch=not args.no_torch, script=places, torch_timeout=args.timeout, autostart=autostart.is_enabled()
    )
    findings = checks.run(found)
    serious = [finding for finding in findings if finding.severity != "note"]
    status = NOT_APPLIED if serious or (args.strict and (findings or found.unknown)) else OK
    if args.json:
        _output.write_json(
            {
                "findings": [finding.as_dict() for finding in findings],
                "checks": list(checks.all_checks()),
                "unknown": [str(one) for one in found.unknown],
                "facts": _shown(found),
                "ok": status == OK,
            }
        )
    else:
        _write(found, findings)
    return status


def _shown(found: Facts) -> dict[str, Any]:
    data = dataclasses.asdict(found)
    data["environment"] = {
        name: value for name, value in sorted(found.environment.items()) if name.startswith(_SHOWN_VARIABLES)
    }
    del data["unknown"]
    return data


def _write(found: Facts, findings: list[Finding]) -> None:
    torch = found.torch
    if torch is not None:
        build = f"CUDA {torch.cuda}" if torch.cuda else "no CUDA"
        nccl = f", NCCL {torch.nccl}" if torch.nccl else ""
        _output.write(_output.paragraph(f"torch {torch.version} ({build}{nccl})"))
    names = [gpu.name for gpu in found.gpus]
    gpus = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    _output.write(
        _output.paragraph(f"GPUs: {gpus}, driver {found.driver}" if gpus else "GPUs: none that the driver reports")
    )
    for line in found.unknown:
        _output.write(_output.paragraph(f"unknown: {line}"))
    for finding in findings:
        _output.write()
        heading = _output.paragraph(f"{finding.severity.upper()} {finding.check}: {finding.what}")
        _output.write(_output.styled(heading, _STYLES[finding.severity]))
        _output.write(_output.paragraph(f"why: {finding.why}", "  "))
        _output.write(_output.paragraph(f"do:  {finding.do}", "  "))
    _output.write()
    counts = [(sum(f.severity == severity for f in findings), severity) for severity in checks.SEVERITIES]
    summary = ", ".join(f"{count} {severity}{'s' if count != 1 else ''}" for count, severity in counts if count)
    _output.write(f"{len(checks.all_checks())} checks: {summary or 'nothing found'}")
