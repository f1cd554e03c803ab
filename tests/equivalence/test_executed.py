"""What a program executes is noted, whoever runs it: the main thread, another one, or a function that has not ended."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import executed

LIGHTNING = """
import threading

def ended(): pass

def generated():
    yield 1

def thrown_into():
    try:
        yield
    except KeyError:
        yield

def never_begun():
    yield

def begun_by_thread(): ended_in_thread()

def ended_in_thread(): pass

def never(): pass

class Trainer:
    def fit(self, leave):
        ended()
        list(generated())
        waiting = thrown_into()
        next(waiting)
        waiting.throw(KeyError)
        list(waiting)
        try:
            never_begun().throw(KeyError("kept"))
        except KeyError as error:
            assert error.args == ("kept",), error
        thread = threading.Thread(target=begun_by_thread)
        thread.start()
        thread.join()
        leave()
"""
PATCH = """
from lightning import one, other, trainer

def replacement(leave):
    trainer.ended()
    trainer.Trainer().fit(leave)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="it is noted with Python 3.11 and later")
@pytest.mark.parametrize("end", ["with its atexit functions", "at once"])
@pytest.mark.parametrize("how", ["as on this Python", "traced"])
def test_all_that_is_executed_is_noted(tmp_path, monkeypatch, how, end):
    if how == "traced":  # as without a compiler
        monkeypatch.setenv("LIGHTNING_PATCHES_TEST_CACHE", str(tmp_path / "empty"))
    else:
        executed.build()
    for package in ("lightning", "lightning_patches", "lightning_patches/patches"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    for empty in ("one", "other"):  # their code is equal
        (tmp_path / "lightning" / f"{empty}.py").touch()
    (tmp_path / "lightning" / "trainer.py").write_text(LIGHTNING)
    (tmp_path / "lightning_patches" / "patches" / "trainer.py").write_text(PATCH)
    leave = f"lambda: (executed.leave({str(tmp_path)!r}, {str(tmp_path)!r}), os._exit(0))"
    program = f"""
import os, sys
sys.path[:0] = [{str(tmp_path)!r}, {str(Path(executed.__file__).parent)!r}]
import executed
executed.note({str(tmp_path)!r}, {str(tmp_path)!r})
from lightning_patches.patches.trainer import replacement
replacement({leave if end == "at once" else "lambda: None"})
"""
    subprocess.run([sys.executable, "-S", "-c", program], check=True, timeout=60)
    functions = {"ended", "generated", "thrown_into", "begun_by_thread", "ended_in_thread", "Trainer.fit", "<module>"}
    noted = executed.read(str(tmp_path), 1)
    assert {name for path, name in noted if path == "trainer.py"} - {"never_begun"} == functions
    assert {path for path, _ in noted} == {"__init__.py", "one.py", "other.py", "trainer.py"}
    called = {name for _, name in executed.read(str(tmp_path), 1, "called")}
    assert called - {"<module>"} == {"ended", "Trainer.fit"}
