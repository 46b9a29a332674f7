"""A run whose devices never become ready ends by itself, and says which device it waited for."""

import json
import os
import re

import pytest

from engine.runs import readiness
from engine.runs.children import processor_s
from engine.runs.predict import prepare
from engine.runs.readiness import ready_limit_s
from tests.support.fake_devices import small_spec

LIMITS_S = (3, 15, 60)
"""Of wall time: to where it waits for ever a device gets in two on an idle machine, later on a busy one."""


def test_the_limit_is_longer_for_more_devices_and_more_weights():
    """Three devices add 6 s. 4 bytes a weight: 20 MB of weights add one second, on boards ten."""
    prepared = prepare(small_spec())
    held = sum(
        readiness.weight_bytes(prepared.spec.model, holding.slice) for holding in prepared.plan.holdings
    )
    assert held > 0
    assert ready_limit_s(prepared.spec, prepared.plan, 100.0) == pytest.approx(106.0 + held / 20e6)
    on_boards = prepared.spec.model_copy(update={"dilation": "nodes"})
    assert ready_limit_s(on_boards, prepared.plan, 100.0) == pytest.approx(106.0 + held / 2e6)


def test_devices_that_do_not_get_ready_end_the_run_which_says_where_they_are(tmp_path, in_a_copy):
    result = tmp_path / "result.json"
    for ready_s in LIMITS_S:
        in_a_copy("stopped_run", result, ready_s)
        outcome, left, logs = json.loads(result.read_text())
        if any("in wait_for_ever" in line for line in logs["d2"]):
            break
    assert outcome["kind"] == "failed"
    on_time = any("listens" in line for line in logs.get("d0", ()))  # unless other work has all cores
    names = "d1, d2" if on_time else "d0, d1, d2"
    said = (
        rf" did not report the state 'listening' within {ready_s} s of wall time: "
        r".*d1 \d+\.\d s, d2 \d+\.\d s"
    )
    assert re.match(names + said, outcome["sentence"])
    assert "LOOM_READY_S" in outcome["sentence"]
    assert any("in wait_for_ever" in line for line in logs["d2"])
    assert left == 0


def test_processor_time_is_that_of_the_process():
    """What it used between two readings of the system's own counter lies between two of `os.times`."""
    before = sum(os.times()[:2])
    found = processor_s(os.getpid())
    after = sum(os.times()[:2])
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert before - tick_s <= found <= after + tick_s
