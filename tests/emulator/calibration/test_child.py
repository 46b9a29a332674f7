"""The process that calibrates: its progress is passed on, its answer read, and Ctrl-C ends it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.calibration import known
from emulator.calibration.contention import _block_s
from emulator.calibration.operations import random_weights
from emulator.calibration.shapes import SHORT
from engine.domain.errors import Cancelled, HostError
from engine.ops.core import Block

ANSWER = {"calibration": {}, "steps": ["x" * 200_000]}  # longer than a pipe holds


@pytest.fixture
def child(monkeypatch, tmp_path):
    """Let a program of a few lines calibrate; returns the processes that were started."""
    started = []
    start = subprocess.Popen

    def with_program(text):
        program = Path(tmp_path, "child.py")
        program.write_text(f"import sys, json, signal, time\nsay = sys.stderr.write\n{text}")

        def popen(arguments, **options):
            started.append(start([sys.executable, str(program)], **options))
            return started[-1]

        monkeypatch.setattr("emulator.calibration.known.subprocess.Popen", popen)
        return started

    return with_program


def test_progress_is_passed_on_and_a_long_answer_is_read(child):
    child(f"say('{known.PROGRESS}kernels\\n'); print({json.dumps(ANSWER)!r})")
    heard = []
    assert known.measured(SHORT, progress=heard.append) == ANSWER
    assert heard == ["kernels"]


def test_after_each_round_the_child_waits_until_its_parent_has_done_its_own(child):
    rounds = (
        "for _ in range(2): say(%r); sys.stderr.flush(); sys.stdin.readline(); say(%r); sys.stderr.flush()"
    )
    child(rounds % (f"{known.PAUSED}\n", f"{known.PROGRESS}on\n") + f"\nprint({json.dumps(ANSWER)!r})")
    order = []
    assert known.measured(SHORT, (), (), order.append, lambda: order.append("between")) == ANSWER
    assert order == ["between", "on", "between", "on"]


def test_a_child_that_fails_is_an_error_with_its_last_words(child):
    child("say('a warning\\n'); sys.exit('no memory')")
    with pytest.raises(HostError, match="Calibrating this machine failed: no memory"):
        known.measured(SHORT)


def test_a_child_that_dies_while_its_parent_is_at_work_is_an_error_with_its_last_words(child):
    started = child(f"say('{known.PAUSED}\\n'); sys.exit('no memory')")
    with pytest.raises(HostError, match="Calibrating this machine failed: no memory"):
        known.measured(SHORT, between=lambda: started[0].wait())


def test_ctrl_c_ends_the_child(child):
    started = child(f"say('{known.PROGRESS}kernels\\n'); sys.stderr.flush(); signal.pause()")

    def interrupt(what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        known.measured(SHORT, progress=interrupt)
    assert started[0].returncode is not None


def test_a_child_that_says_nothing_is_ended_when_its_parent_no_longer_wants_it(child):
    started = child("signal.pause()")

    def give_up():
        if started:  # the first call comes before the child has done anything
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        known.measured(SHORT, check=give_up)
    assert started[0].returncode is not None


def test_a_process_that_the_host_lets_begin_too_late_is_still_timed():
    store = random_weights("tiny-gpt2")
    for piece in Block(0, None).slices(store.model):
        store.load(piece)
    assert _block_s(store, [0], rows=1, begin_s=0.0, figure_s=0.0) > 0.0  # both are long over
