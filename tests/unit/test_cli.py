"""The command line. Each test runs it in a separate process, as a user does, unless it tests a single function."""

from __future__ import annotations

import json
import os
import platform
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Optional

import pytest

from lightning_patches import cli
from lightning_patches.cli import _arguments, report
from lightning_patches.engine import toggle
from lightning_patches.patches import all_patches
from tests.support import variants
from tests.support.run import variables
from tests.support.variants import ROOT, Variant

LABELS = {"", "group", "affected", "fixed", "in", "upstream", "verdict", "drop", "it", "at", "covered"}
LABELS |= {"PATCH", "BUG", "EFFECT"}
"""Words that a narrow terminal gets instead of columns."""
ANSI = re.compile(r"\x1b\[")
DEVICE, UNMASKED = "logged-metrics-device", "dataloader-error-unmasked"
MODULE = (sys.executable, "-m", "lightning_patches")
CONSOLE_SCRIPT = (
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = '/anywhere/bin/lightning-patches'; "
    "from lightning_patches.cli import main; sys.exit(main())",
)


def environment(*path: Path, spec: Optional[str] = None, **more: str) -> dict[str, str]:
    """Return a user's environment, with exactly these directories on the path."""
    return variables(*path, **({} if spec is None else {"LIGHTNING_PATCHES": spec}), **more)


def call(*arguments: str, env: dict[str, str], how: tuple[str, ...] = MODULE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*how, *arguments], env=env, cwd="/", capture_output=True, text=True, timeout=120)


def release(distribution: str, version: str) -> Path:
    return Path(variants.environment_of(Variant(distribution, version))["PYTHONPATH"].split(os.pathsep)[-1])


def strange_lightning(directory: Path, version: str) -> Path:
    """Write a ``lightning`` with this version but unknown code, which must not be imported."""
    for package in ("lightning", "lightning/pytorch", "lightning/fabric"):
        (directory / package).mkdir(parents=True)
        (directory / package / "__init__.py").write_text("raise SystemExit('Lightning was imported')\n")
    (directory / "lightning" / "version.info").write_text(version)
    return directory


def metadata(directory: Path, name: str, version: str, origin: str = "") -> Path:
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if origin:
        (info / "direct_url.json").write_text(origin)
    return directory


class TestStatus:
    def test_status_without_lightning(self):
        done = call("status", env=environment())
        assert done.returncode == 0, done
        assert "There is no Lightning in this environment" in done.stdout
        assert f"{sys.version_info[0]}.{sys.version_info[1]}" in done.stdout

    def test_two_distributions_in_different_versions(self):
        env = environment(release("lightning", "2.3.3"), release("pytorch-lightning", "2.6.6"))
        document = json.loads(call("status", "--json", env=env).stdout)
        assert [(d["distribution"], d["version"]) for d in document["distributions"]] == [
            ("lightning", "2.3.3"),
            ("pytorch-lightning", "2.6.6"),
        ]
        assert set(document["distributions"][1]["packages"]) == {"pytorch_lightning", "lightning_fabric"}
        audited = json.loads(call("audit", "--json", env=env).stdout)["audited"]
        figures = {f"{one['distribution']} {one['version']}": one["figures"] for one in audited}
        assert document["figures"] == figures and len(figures) == 2
        verdicts = {(e["namespace"], e["patch"]): e["verdict"] for e in document["patches"]}
        assert len(verdicts) == 2 * len(all_patches())
        assert verdicts["lightning", DEVICE] == "pending"
        assert verdicts["pytorch_lightning", DEVICE] == "fixed-upstream"
        assert verdicts["pytorch_lightning", UNMASKED] == "pending"
        for namespace, counts in document["summary"].items():
            assert sum(counts.values()) == len(all_patches()), namespace
        text = call("status", env=env).stdout
        assert text.startswith("Do: `import lightning_patches` at the top of the script")
        assert re.search(r"^pytorch-lightning 2\.6\.6: \d+ fixes will be applied, .*\d+ fixed-upstream", text, re.M)
        assert DEVICE not in text and "status --all" in text
        everything = call("status", "--all", env=env).stdout
        assert re.search(rf"^{DEVICE} +lightning 2\.3\.3 +pending", everything, re.M)
        assert re.search(rf"^{DEVICE} +pytorch-lightning 2\.6\.6 +fixed-upstream", everything, re.M)
        assert "status --all" not in everything

    def test_audit_mentions_the_other_distribution_in_one_line(self):
        env = environment(release("lightning", "2.3.3"), release("pytorch-lightning", "2.6.6"), COLUMNS="200")
        text = call("audit", env=env).stdout
        used, beside = re.split(r"\npytorch-lightning 2\.6\.6 has \d+ known bugs", text)
        assert re.match(r"lightning 2\.3\.3 has \d+ known bugs", used)
        assert "`lightning-patches audit pytorch-lightning==2.6.6`" in beside
        assert text.count("\nBUG ") == 1 == call("audit", "--all", env=env).stdout.count("\nBUG ")
        first, second = json.loads(call("audit", "--json", env=env).stdout)["audited"]
        later = {bug["name"] for bug in second["bugs"]} - {bug["name"] for bug in first["bugs"]}
        assert later and not any(f"\n{name} " in text for name in later)

    @pytest.mark.parametrize(
        ("variables", "script", "spec", "names"),
        [
            ({}, "", None, []),
            ({"SLURM_JOB_ID": "7"}, "", None, ["slurm-only-below-srun"]),
            ({"SLURM_JOB_ID": "7"}, "", "all", []),
            ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "MASTER_ADDR": "ib0"}, "", None, ["slurm-master-addr"]),
            ({}, "self.log('loss', loss, prog_bar=True)", None, ["progress-bar-without-wait"]),
            ({}, "# prog_bar\nx = 'BatchSampler'", None, []),
            ({}, "from torch.utils.data import BatchSampler", None, ["loader-sampler-kept"]),
            ({}, "class Net:\n  def prepare_data(self): ...", None, ["prepare-data-without-deadline"]),
            ({}, "tuner.lr_find(model)", None, ["lr-finder-slope"]),
            ({"SLURM_STEP_ID": "0"}, "tuner.lr_find(model)", None, ["lr-finder-slope", "tuner-temporary-checkpoint"]),
        ],
    )
    def test_opt_in_patches_are_suggested(self, tmp_path, variables, script, spec, names):
        (tmp_path / "train.py").write_text(script)
        env = environment(release("pytorch-lightning", "2.0.9"), spec=spec, **variables)
        arguments = ["--script", str(tmp_path / "train.py")] if script else []
        done = call("status", "--json", *arguments, env=env)
        suggested = json.loads(done.stdout)["suggested"]
        assert sorted(one["patch"] for one in suggested) == names, done
        text = call("status", *arguments, env=env).stdout
        for one in suggested:
            assert f"{one['patch']} is opt-in, for {one['for_whom']}. You may need it" in text
            assert f"because of {', '.join(one['signs'])}." in text

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("import pytorch_lightning", "the script imports Lightning in line 1, and lightning_patches nowhere"),
            ("import lightning_patches\nimport pytorch_lightning", "without `# noqa: F401` and `# isort: skip`"),
            ("import lightning_patches  # noqa: F401  # isort: skip\nimport pytorch_lightning", ""),
            ("import pytorch_lightning\nimport lightning_patches\nlightning_patches.activate()", ""),
        ],
    )
    def test_script_that_may_lose_its_import_is_reported(self, tmp_path, source, words):
        (tmp_path / "train.py").write_text(source)
        env = environment(release("pytorch-lightning", "2.0.9"), COLUMNS="500")
        text = call("status", "--script", str(tmp_path / "train.py"), env=env).stdout
        document = json.loads(call("status", "--json", "--script", str(tmp_path / "train.py"), env=env).stdout)
        if words:
            (finding,) = document["script"]
            assert words in finding["what"]
            printed = f"note: {finding['what']}. {finding['why']} {finding['do']}"
            assert " ".join(printed.split()) in " ".join(text.split())
        else:
            assert document["script"] == [] and "\nnote: " not in text
            assert text.startswith("Do: nothing: the script imports lightning_patches.\n")

    def test_unreadable_script_is_reported(self, tmp_path):
        (tmp_path / "train.py").write_text("def")
        (tmp_path / "train.ipynb").write_text('{"cells": [{"source": ["import lightning"]}]}')
        for name in ("train.py", "none.py", "train.ipynb"):
            done = call("status", "--script", str(tmp_path / name), env=environment())
            assert done.returncode == 2 and f"{name} cannot be " in done.stderr, done
        assert "this is a notebook" in done.stderr

    def test_status_imports_neither_torch_nor_lightning(self):
        program = (
            "import sys; from lightning_patches.cli import main; status = main(['status', '--all']); "
            "print(status, sorted({'torch', 'lightning', 'pytorch_lightning'} & set(sys.modules)))"
        )
        env = environment(release("lightning", "2.3.3"), release("pytorch-lightning", "2.6.6"))
        done = call("-c", program, env=env, how=(sys.executable,))
        assert done.stdout.splitlines()[-1] == "0 []", done

    def test_drifted_patch_exits_with_status_1_if_selected(self, tmp_path):
        where = strange_lightning(tmp_path, "2.3.3")
        done = call("status", env=environment(where))
        assert done.returncode == 1, done
        assert re.search(rf"^{DEVICE} +drifted +2\.4\.0 ", done.stdout, re.M)
        assert re.search(rf"^{DEVICE}: \S+ in lightning 2\.3\.3 is missing", done.stdout, re.M)
        assert done.stdout.startswith("Do: read below why ")
        assert json.loads(call("status", "--json", env=environment(where)).stdout)["ok"] is False
        off = call("status", env=environment(where, spec="off"))
        assert off.returncode == 0 and "LIGHTNING_PATCHES=off: no patch is applied." in off.stdout

    def test_status_shows_the_toggle(self):
        lightning = release("lightning", "2.3.3")
        done = call("status", DEVICE, env=environment(lightning, spec=f"strict,-{DEVICE}"))
        assert done.returncode == 0, done
        assert re.search(rf"^{DEVICE} +disabled +2\.4\.0 +not selected", done.stdout, re.M)
        assert "Strict." in done.stdout
        settings = json.loads(call("status", "--json", env=environment(lightning, spec="19813")).stdout)["toggle"]
        assert settings["value"] == "19813"
        assert settings["selected"] == sorted(toggle.parse("19813", all_patches()).names)

    @pytest.mark.parametrize("how", [MODULE, CONSOLE_SCRIPT], ids=["module", "script"])
    def test_broken_toggle_is_explained(self, how):
        if how is MODULE and sys.version_info < (3, 10):
            pytest.skip("sys.orig_argv, which tells what -m was given, is new in Python 3.10")
        env = environment(release("lightning", "2.3.3"), spec="logged-metric-device")
        done = call("status", env=env, how=how)
        assert done.returncode == 2, done
        assert "Did you mean 'logged-metrics-device'" in done.stdout
        assert "lightning          2.3.3" in done.stdout
        assert "Traceback" not in done.stdout + done.stderr
        document = json.loads(call("status", "--json", env=env, how=how).stdout)
        assert "logged-metrics-device" in document["toggle"]["error"]
        assert document["patches"] == []
        assert document["ok"] is False

    @pytest.mark.parametrize("spec", ["x" * 50_000, "-" + "x" * 50_000, "strict," * 10_000])
    def test_long_toggle_is_shortened_in_messages(self, spec):
        env = environment(release("lightning", "2.3.3"), spec=spec)
        for command in (["status"], ["audit"], ["report"], ["show", "19813", "--no-diff"]):
            done = call(*command, env=env)
            assert max(map(len, (done.stdout + done.stderr).splitlines())) < 3000, command

    def test_other_commands_ignore_a_broken_toggle(self):
        done = call("list", env=environment(spec="logged-metric-device"), how=CONSOLE_SCRIPT)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
    def test_compromised_release_is_reported_from_its_metadata(self, tmp_path, version):
        done = call("status", env=environment(metadata(tmp_path, "lightning", version)))
        assert done.returncode == 1, done
        assert f"WARNING: lightning {version} from PyPI was compromised" in done.stdout
        assert "GHSA-w37p-236h-pfx3" in done.stdout
        assert "Lightning was imported" not in done.stdout + done.stderr

    def test_upstream_master_with_a_forbidden_number_is_not_reported(self, tmp_path):
        origin = json.dumps({"url": "https://example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}})
        where = metadata(strange_lightning(tmp_path, "2.6.2"), "lightning", "2.6.2", origin)
        document = json.loads(call("status", "--json", env=environment(where, spec="off")).stdout)
        (installed,) = document["distributions"]
        assert installed["forbidden"] is False
        assert installed["note"].startswith("built from source")
        assert document["ok"] is True

    def test_status_shows_the_selected_patches(self):
        env = environment(release("lightning", "2.3.3"))

        def shown(*arguments):
            lines = call("status", *arguments, env=env).stdout.partition("\nPATCH ")[2].splitlines()[1:]
            return {line.split()[0] for line in lines if not line.startswith("`")}

        assert shown("19813") == {DEVICE}
        assert shown() == set()
        disabled = {patch.name for patch in all_patches() if not patch.default}
        assert shown("--verdict", "disabled") < disabled < shown("--all")
        crashes = {patch.name for patch in all_patches() if patch.group == "crash"}
        assert shown("--group", "crash") == crashes
        assert call("status", "logged-metric-device", env=env).returncode == 2

    def test_unknown_name_is_the_only_message(self):
        done = call("status", "no-such-patch", env=environment())
        assert (done.returncode, done.stdout) == (2, "")
        assert "no-such-patch" in done.stderr


class TestCounts:
    """All commands show the same counts for an environment."""

    def test_all_commands_show_the_same_counts(self):
        env = environment(release("lightning", "2.2.5"))
        program = (
            "import lightning_patches, lightning.pytorch, lightning.fabric; "
            "from lightning_patches.engine.verdicts import count_fixes; print(count_fixes(lightning_patches.report()))"
        )
        done = call("-c", program, env=env, how=(sys.executable,))
        live = int(done.stdout)
        assert f"lightning 2.2.5: {live} fixes (" in done.stderr
        assert f"lightning 2.2.5: {live} fixes will be applied" in call("status", env=env).stdout
        assert json.loads(call("status", "--json", env=env).stdout)["fixes"] == {"lightning 2.2.5": live}
        assert f": {live} would be fixed by the patches" in call("audit", "lightning==2.2.5", env=env).stdout
        (installed,) = json.loads(call("audit", "--json", env=env).stdout)["audited"]
        patches = {patch.name: patch for patch in all_patches()}
        absent = [name for name in installed["excluded"] if patches[name].default and patches[name].is_counted]
        assert installed["figures"]["default"] == live - len(absent)


class TestList:
    def test_list_filters_by_group_source_and_version(self):
        document = json.loads(call("list", "--group", "crash", "--json", env=environment()).stdout)
        assert [record["name"] for record in document["patches"]] == [
            p.name for p in all_patches() if p.group == "crash"
        ]
        for source in ("pytorch/tuner/lr_finder.py", "/env/site-packages/lightning/pytorch/tuner/lr_finder.py"):
            found = json.loads(call("list", "--source", source, "--json", env=environment()).stdout)
            assert {patch["name"] for patch in found["patches"]} == {
                patch.name for patch in all_patches() if any("tuner.lr_finder:" in place for place in patch.locations)
            }
        new = json.loads(call("list", "--since", "0.1.0", "--json", env=environment()).stdout)
        assert {patch["name"] for patch in new["patches"]} == {
            patch.name for patch in all_patches() if patch.added != "0.1.0"
        }
        assert "tf32-advice" in {patch["name"] for patch in new["patches"]}
        assert call("list", "--since", "next", env=environment()).returncode == 2
        wrong = call("list", "--group", "crashes", env=environment())
        assert wrong.returncode == 2
        assert "correctness" in wrong.stderr


class TestShow:
    @pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
    def test_show_prints_the_whole_record(self, patch, capsys):
        assert cli.main(["show", patch.name]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for wanted in (patch.note, *patch.impact.symptoms):
            assert " ".join(wanted.split()) in text
        assert ("No release has the fix yet." in text) == (patch.fixed_in is None and not patch.upstream.merged)
        assert ("is merged, but not released yet" in text) == patch.upstream.merged
        assert ("opt-in" in text.lower()) or patch.default

    @pytest.mark.parametrize(
        "key",
        [
            *("PR 19814", "PR #19814", "pr19814", "PR19814", "issue 19813", "gh-19813"),
            "https://github.com/Lightning-AI/pytorch-lightning/issues/19813",
            "https://github.com/Lightning-AI/pytorch-lightning/pull/19814#discussion_r1",
        ],
    )
    def test_number_is_found_in_every_written_form(self, key):
        assert [patch.name for patch in _arguments.find_patches(key)] == [DEVICE]
        if "/" not in key and not key.startswith(("issue", "gh")):
            for spec in (key, f"1,{key}", f"-{key}"):
                assert (DEVICE in toggle.parse(spec, all_patches()).names) == (spec[0] != "-")

    def test_show_reports_if_the_patch_applies_here(self):
        env = environment(release("lightning", "2.3.3"))
        assert "lightning 2.3.3: pending\n" in call("show", DEVICE, env=env).stdout
        assert "There is no Lightning in this environment." in call("show", DEVICE, env=environment()).stdout

    def test_show_reports_unknown_names_and_numbers(self):
        done = call("show", "logged-metric-devices", env=environment())
        assert (done.returncode, done.stdout) == (2, "")
        assert "Did you mean logged-metrics-device" in done.stderr
        number = call("show", "19818000", env=environment())
        assert number.returncode == 2
        assert (
            "'19818000' is not the name of a patch, and not the number of a known issue or pull request"
            in number.stderr
        )


class TestOutput:
    def test_table_is_plain_when_piped(self):
        env = environment(release("lightning", "2.3.3"), COLUMNS="80")
        for arguments in (["status", "--all"], ["list"], ["show", DEVICE]):
            text = call(*arguments, env=env).stdout
            assert not ANSI.search(text), arguments
            assert text.isascii(), arguments
        assert max(map(len, call("list", env=env).stdout.splitlines())) <= 80

    @pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": ""}, {"TERM": "xterm", "NO_COLOR": "1"}])
    def test_terminal_gets_no_escape_sequence_when_it_has_no_colours(self, variables):
        env = environment(release("lightning", "2.2.5"), COLUMNS="80", **variables)
        for command in (["list"], ["status"], ["audit"], ["doctor", "--no-torch"]):
            assert not ANSI.search(on_terminal([*MODULE, *command], env, statuses=(0, 1))), command

    def test_closed_pipe_is_not_an_error(self):
        done = without_reader("list", env=environment())
        assert (done.returncode, done.stderr) == (0, "")

    def test_exit_status_is_kept_if_the_pipe_closes(self, tmp_path):
        done = without_reader("status", env=environment(strange_lightning(tmp_path, "2.3.3")))
        assert (done.returncode, done.stderr) == (1, "")

    @pytest.mark.parametrize("columns", ["40", "60", "80", "100", "140"])
    def test_wrapping_breaks_no_word_or_command(self, columns):
        """The terminal shows the same whole words as the plain output, and tables fit into 80 columns."""
        env = environment(release("lightning", "2.2.5"), TERM="dumb", COLUMNS=columns)
        for arguments in (["list"], ["status", "--all"], ["audit"], ["show", "loader-sampler-kept", "--no-diff"]):
            words = {word.strip(",.:") for word in call(*arguments, env=env).stdout.split()}
            shown = on_terminal([*MODULE, *arguments], env, statuses=(0, 1))
            assert {word.strip(",.:\u2500") for word in shown.split()} - words <= LABELS, arguments
            if int(columns) >= 80:
                lines = [line for line in shown.splitlines() if "/" not in line]  # a path stays whole, too
                assert max(map(len, lines)) <= int(columns), arguments

    @pytest.mark.parametrize(
        "variables",
        [
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            {"PYTHONIOENCODING": "ascii:strict"},
            {"PYTHONIOENCODING": "latin-1:strict", "LIGHTNING_PATCHES": "caf\u00e9 \u2603 \udcff"},
        ],
        ids=["C", "ascii", "latin-1"],
    )
    def test_names_that_the_terminal_cannot_show_are_escaped(self, tmp_path, variables):
        directory = os.fsencode(tmp_path) + b"/caf\xe9 \xe2\x98\x83"
        os.mkdir(directory)
        name = b"sn\xff\xc3\xa9"
        for suffix, text in ((b".py", "print(1)"), (b".txt", "lightning==2.2.5")):
            with open(directory + b"/" + name + suffix, "w") as file:
                file.write(text)
        env = environment(release("lightning", "2.2.5"), **variables)
        for command in (
            *(["status", "--script", name + b".py"], ["doctor", "--no-torch", name + b".py"], ["audit", "."]),
            *(["audit", name + b".txt"], ["audit", name], ["diagnose", name + b".txt"], ["diagnose", name]),
            *(["diagnose", "--", "python", name + b".py"], ["show", name], ["run", name], [name]),
        ):
            done = subprocess.run([*MODULE, *command], env=env, cwd=directory, capture_output=True, timeout=200)
            assert done.returncode in (0, 1, 2, 127) and done.stdout + done.stderr, (command, done)
            for word in (b"Traceback", b"UnicodeE", b"is a bug of"):
                assert word not in done.stderr, (command, done)


@pytest.mark.parametrize(
    "command",
    ["status", "list", "show 19813", "report", "audit lightning==2.2.5", "doctor --no-torch", "hang show",
     "diagnose 'epoch 0 is short'", "autostart status"],
)  # fmt: skip
def test_json_is_an_object_with_a_schema(command):
    document = json.loads(call(*shlex.split(command), "--json", env=environment()).stdout)
    assert document["schema"] == 1 and len(document) > 1


@pytest.mark.parametrize("command", ["status", "report", "audit --fail-on never", "doctor --no-torch"])
def test_command_succeeds_with_metadata_that_are_not_utf8(tmp_path, command):
    for name, version in (("lightning", "2.2.5"), ("torch", "2.13.0"), ("torchmetrics", "1.9.0")):
        information = metadata(tmp_path, name, version) / f"{name}-{version}.dist-info" / "METADATA"
        information.write_bytes(information.read_bytes() + b"Author: \xe9\n")
    done = call(*command.split(), env=environment(tmp_path, release("lightning", "2.2.5")))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout, done


class TestReport:
    def test_report_has_the_needed_facts_and_no_private_data(self, tmp_path):
        where = strange_lightning(tmp_path / "secret-project", "2.3.3")
        secrets = {"HOME": str(tmp_path), "USER": "somebody-private", "WANDB_API_KEY": "0123456789"}
        env = environment(where, spec="default", **secrets)
        done = call("report", env=env)
        assert done.returncode == 0, done
        for wanted in (
            "lightning 2.3.3",
            "Python: CPython",
            "LIGHTNING_PATCHES: default",
            f"{DEVICE} in lightning 2.3.3",
        ):
            assert wanted in done.stdout
        for private in ("secret-project", *secrets.values(), platform.node(), str(ROOT)):
            assert private not in done.stdout, private
        assert json.loads(call("report", "--json", env=env).stdout)["Lightning"] == {"lightning": "2.3.3"}

    @pytest.mark.parametrize(
        "path",
        [
            "'/home/jane/env/lightning/x.py'",
            "'/home/jane doe/secret project/x.py'",
            '"/home/jane\'s/secret project/x.py"',
            "/home/jane doe/secret project/x.py",
            "'C:\\\\Users\\\\Jane Doe\\\\secret\\\\x.py'",
            r"C:\Users\Jane Doe\secret\x.py",
            r"\\server\jane doe\secret project\x.py",
            "~/jane doe/secret/x.py",
            "secret project/jane/x.py",
            "file:///home/jane/x.py",
        ],
    )
    def test_report_shows_no_part_of_a_path(self, path):
        printed = report.without_paths(
            f"the source of pytorch.a:b cannot be read: [Errno 13] Permission denied: {path} (x)"
        )
        assert printed.startswith("the source of pytorch.a:b cannot be read")
        assert not any(part in printed.lower() for part in ("jane", "doe", "secret", "home", "users", "x.py", "server"))

    def test_toggle_or_version_with_a_path_is_not_shown(self, tmp_path):
        where = strange_lightning(tmp_path / "a", "2.3.3 of /home/jane doe/secret")
        for spec in ("default", "/home/jane doe/secret,default"):
            for how in ([], ["--json"]):
                done = call("report", *how, env=environment(where, spec=spec))
                assert done.returncode == 0, done
                assert not any(part in done.stdout for part in ("jane", "secret", "home")), done


class TestRun:
    def test_script_without_suffix_that_is_not_executable_runs(self, tmp_path):
        (tmp_path / "train").write_text("print('trains')")
        assert call("run", str(tmp_path / "train"), env=environment()).stdout == "trains\n"
        assert "a script that is not executable" in " ".join(call("run", "--help", env=environment()).stdout.split())


class TestInterrupt:
    """Ctrl-C at chosen times: a finder sends the signal when Python looks for a module."""

    FINDER = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
"""

    def interrupted(self, tmp_path: Path, module: str, *before: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "sitecustomize.py").write_text(self.FINDER)
        env = environment(tmp_path, INTERRUPT_AT=module)
        command = [*before, *MODULE, "list", "--group", "crash"]
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=120)

    @pytest.mark.parametrize(
        "module",
        [
            *("lightning_patches.activation.startup", "lightning_patches.engine.hooks", "lightning_patches.trust"),
            *("lightning_patches.cli", "argparse", "lightning_patches.cli._output", "lightning_patches.cli.list_"),
            "lightning_patches.patches.imports.import_without_pkg_resources",
        ],
    )
    def test_command_ends_with_130_and_no_traceback_when_interrupted_at_its_start(self, tmp_path, module):
        done = self.interrupted(tmp_path, module)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

    def test_command_continues_when_interrupts_are_ignored(self, tmp_path):
        done = self.interrupted(tmp_path, "argparse", "sh", "-c", "trap '' INT; exec \"$@\"", "sh")
        assert (done.returncode, done.stderr) == (0, "")

    def test_command_can_clean_up_when_interrupted_while_it_runs(self, tmp_path):
        program = (
            "import os, signal, sys\n"
            "sys.argv = ['lightning-patches', 'list']\n"
            "from lightning_patches.cli import list_, main\n"
            "def run(args):\n"
            "    try:\n"
            "        os.kill(os.getpid(), signal.SIGINT)\n"
            "    finally:\n"
            "        print('cleaned up')\n"
            "list_.run = run\n"
            "sys.exit(main())"
        )
        done = call("-c", program, env=environment(), how=(sys.executable,))
        assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "")

    def test_other_programs_keep_their_signal_handler(self):
        program = (
            "import signal, lightning_patches.cli as cli; cli.main(['--version']); "
            "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
        )
        done = call("-c", program, env=environment(), how=(sys.executable,))
        assert done.stdout.splitlines()[-1] == "True", done


class TestCompletion:
    def test_completion_knows_commands_and_names(self, tmp_path):
        pytest.importorskip("argcomplete")
        for line, wanted in (("lightning-patches stat", "status"), ("lightning-patches show logged-met", DEVICE)):
            out = tmp_path / "out"
            env = environment(
                _ARGCOMPLETE="1", _ARGCOMPLETE_STDOUT_FILENAME=str(out), COMP_LINE=line, COMP_POINT=str(len(line)),
                _ARGCOMPLETE_IFS="\n",
            )  # fmt: skip
            call(env=env, how=CONSOLE_SCRIPT)
            assert wanted in out.read_text().split(), line


class TestUsage:
    def test_wrong_arguments_are_answered_with_where_help_is(self):
        for arguments in (["audit", "torch==2"], ["show", "no-such-patch"], ["diagnose"]):
            done = call(*arguments, env=environment())
            assert done.returncode == 2
            assert f"See `lightning-patches {arguments[0]} --help`." in done.stderr
        assert "usage: lightning-patches audit" in call("audit", "--fail-on", "x", env=environment()).stderr

    def test_version_is_printed(self):
        done = call("--version", env=environment())
        assert done.returncode == 0
        assert call("-V", env=environment()).stdout == done.stdout
        assert re.fullmatch(r"lightning-patches \d+\.\d+\.\d+\S*\n", done.stdout)

    def test_help_lists_commands_and_exit_statuses(self):
        done = call("--help", env=environment(COLUMNS="80"))
        assert done.returncode == 0, done
        assert "exit status:" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
        for name in cli.commands():
            assert re.search(rf"^ +{name}\b", done.stdout, re.M), name

    @pytest.mark.parametrize("name", cli.commands())
    def test_help_of_a_command_has_its_usage_and_fits_a_terminal(self, name):
        done = call(name, "--help", env=environment(COLUMNS="80"))
        assert done.returncode == 0 and f"usage: lightning-patches {name}" in done.stdout, done
        assert len(re.findall(r"^exit status", done.stdout, re.MULTILINE)) <= 1
        assert max(map(len, done.stdout.splitlines())) <= 80

    def test_command_is_imported_only_when_used(self):
        program = (
            "import sys; from lightning_patches.cli import main; main(['list', '--json']); "
            "print('lightning_patches.cli.status' in sys.modules)"
        )
        done = call("-c", program, env=environment(), how=(sys.executable,))
        assert done.stdout.splitlines()[-1] == "False", done


def through(line: str) -> subprocess.CompletedProcess[str]:
    """Return a line for the shell, in which "$@" is the program."""
    return subprocess.run(["sh", "-c", line, "sh", *MODULE], env=environment(), cwd="/", capture_output=True, text=True)


class TestStreams:
    """Standard streams that are closed or full."""

    @pytest.mark.parametrize("command", ["list", "status", "status --json", "--version", "show 19813", "audit --help"])
    def test_closed_stdout_raises_nothing(self, command):
        done = through(f'"$@" {command} >&-')
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_closed_stderr_is_not_replaced_by_stdout(self):
        done = through('"$@" show no-such-patch 2>&-')
        assert (done.returncode, done.stdout) == (2, "")
        done = through('"$@" show no-such-patch 2>&- >&-')
        assert done.returncode == 2

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    @pytest.mark.parametrize("command", ["list", "status", "status --json", "--version", "audit --help"])
    def test_write_error_is_reported(self, command):
        done = through(f'"$@" {command} >/dev/full')
        assert done.stderr == "lightning-patches: cannot write: No space left on device\n"
        assert done.returncode == 2
        assert through(f'"$@" {command} >/dev/full 2>&1').returncode == 2

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    @pytest.mark.parametrize("command", ["show no-such-patch", "no-such-command", "audit --fail-on x", ""])
    def test_unprintable_error_keeps_its_status(self, command):
        assert through(f'"$@" {command} 2>/dev/full').returncode == 2


def without_reader(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command whose output goes into a pipe that is closed at the other end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        return subprocess.run(
            [*MODULE, *arguments], env=env, cwd="/", stdout=gone, stderr=subprocess.PIPE, text=True, timeout=200
        )


def on_terminal(command: list[str], env: dict[str, str], statuses: tuple[int, ...] = (0,)) -> str:
    """Run a command on a terminal and return the text that it shows."""
    ours, its = pty.openpty()
    process = subprocess.Popen(command, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=its, stderr=its)
    os.close(its)
    shown = b""
    try:
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # Linux raises EIO when the last writer has closed the terminal
                break
            if not block:
                break
            shown += block
        assert process.wait(200) in statuses, shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown.decode()
