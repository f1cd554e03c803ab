"""Tests of the simulated CUDA device. Each program runs in a new process."""

import os
import pathlib
import sys
import textwrap

import pytest

from tests.support.run import execute, variables
from tests.support.variants import no_simulated_cuda

HERE = pathlib.Path(__file__).resolve().parent
SITE = HERE / "site"

BUILD_SECONDS = 400  # the first test that needs the library compiles it
pytestmark = [
    pytest.mark.skipif(bool(no_simulated_cuda()), reason=no_simulated_cuda()),
    pytest.mark.timeout(BUILD_SECONDS + 200),
]


@pytest.fixture
def python(tmp_path):
    """Return a function that runs Python in a new session, which is always killed at the end.

    It returns the exit status and the output.
    """

    def run(*arguments, seconds=BUILD_SECONDS, active=True, before=(), after=(), **environment):
        more = {key: str(value) for key, value in environment.items()}
        more |= {"SIMULATED_CUDA": "1" if active else "0"}
        found = variables(PYTHONPATH=os.pathsep.join(map(str, [*before, SITE, *after])), **more)
        status, output = execute([sys.executable, *map(str, arguments)], found, seconds, tmp_path, patience=0)
        assert status != 124, f"not finished after {seconds} s:\n{output}"
        return status, output

    return run


# ---------------------------------------------------------------- the device


@pytest.mark.parametrize("devices", [2, 1])
def test_device_behaves_like_cuda(python, devices):
    options = ("-p", "no:cacheprovider", "--noconftest", HERE / "conformance.py")
    status, output = python("-m", "pytest", *options, SIMULATED_CUDA_DEVICE_COUNT=devices)
    assert status == 0, output
    assert ("skipped" in output) == (devices == 1), output


@pytest.mark.distributed
def test_two_processes_with_nccl(python):
    status, output = python(HERE / "distributed_program.py")
    assert status == 0, output
    assert "all parts passed on both ranks" in output


# ---------------------------------------------------------------- turning it on


def test_simulation_is_off_by_default(python):
    program = "import sys, torch; print('simulated_cuda' in sys.modules)"
    status, output = python("-c", program, active=False)
    assert (status, output) == (0, "False\n")


def test_simulation_costs_nothing_before_torch_is_imported(python):
    program = "import sys; print('simulated_cuda' in sys.modules, 'torch' in sys.modules)"
    assert python("-c", program) == (0, "True False\n")


def test_torch_can_be_found_without_an_import(python):
    program = """
        import importlib.util
        assert importlib.util.find_spec("torch") is not None
        import torch
        print(torch.cuda.device_count())
    """
    status, output = python("-c", textwrap.dedent(program))
    assert status == 0 and output.endswith("2\n"), output


def test_import_after_torch_is_refused(python):
    status, output = python("-c", "import torch, simulated_cuda", active=False)
    assert status != 0
    assert "ImportError: simulated_cuda must be imported before torch" in output


@pytest.mark.parametrize("place", ["before", "after"])
def test_other_sitecustomize_also_runs(python, tmp_path, place):
    other = tmp_path / "other"
    other.mkdir()
    chain = (SITE / "sitecustomize.py").read_text()  # another sitecustomize that also runs hidden ones
    if place == "after":
        chain = ""
    (other / "sitecustomize.py").write_text(f"import sys\nsys.other_ran = True\n{chain}")
    program = "import sys; print(sys.other_ran, 'simulated_cuda' in sys.modules)"
    status, output = python("-c", program, **{place: [other]})
    assert (status, output) == (0, "True True\n")


def test_failing_sitecustomize_does_not_stop_python(python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('broken')")
    status, output = python("-c", "print('started')", after=[tmp_path])
    assert status == 0 and "ValueError at start-up: broken" in output
    assert output.endswith("started\n")


# ---------------------------------------------------------------- building


def fake_compiler(tmp_path, body):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\n" + textwrap.dedent(body))
    compiler.chmod(0o755)
    return compiler


def test_missing_compiler_is_reported(python, tmp_path):
    status, output = python("-c", "import torch", CXX="/nowhere/c++", LIGHTNING_PATCHES_TEST_CACHE=tmp_path / "cache")
    assert status != 0
    assert "ImportError: The simulated GPUs need a C++ compiler. Install /nowhere/c++, or" in output


def test_compiler_errors_are_shown(python, tmp_path):
    compiler = fake_compiler(tmp_path, "echo 'device.cpp:1: no such thing' >&2; exit 3")
    cache = tmp_path / "cache"
    status, output = python("-c", "import torch", CXX=compiler, LIGHTNING_PATCHES_TEST_CACHE=cache)
    assert status != 0
    assert "ended with status 3" in output and "device.cpp:1: no such thing" in output
    assert not [file for file in cache.iterdir() if file.suffix != ".lock"]


def test_concurrent_builds_compile_once(python, tmp_path):
    compiler = fake_compiler(
        tmp_path,
        f"""
        echo run >> {tmp_path}/runs
        sleep 1
        while [ "$1" != -o ]; do shift; done
        echo library > "$2"
        """,
    )
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import importlib.util, subprocess, sys
            from simulated_cuda import _library

            if len(sys.argv) == 1:
                others = [subprocess.Popen([sys.executable, __file__, "x"]) for _ in range(3)]
                assert [other.wait() for other in others] == [0, 0, 0]
            torch_folder = importlib.util.find_spec("torch").submodule_search_locations[0]
            assert _library.library_file(torch_folder).read_text() == "library\\n"
            """
        )
    )
    cache = tmp_path / "cache"
    status, output = python(program, CXX=compiler, LIGHTNING_PATCHES_TEST_CACHE=cache)
    assert status == 0, output
    assert (tmp_path / "runs").read_text() == "run\n"
    (library,) = [file for file in cache.iterdir() if file.suffix != ".lock"]
    assert library.name.startswith("simulated_cuda-torch-") and library.suffix == ".so"
