"""A run whose devices never become ready ends by itself, and says which device it waited for."""

import json
import os
import subprocess
import sys

import pytest

from engine.runs import readiness
from engine.runs.predict import prepare
from engine.runs.readiness import ready_limit_s
from tests.support.fake_devices import small_spec

PATIENCE_S = 120


def test_the_limit_is_longer_for_more_devices_and_more_weights():
    """Three devices add 6 s. 4 bytes a weight: 20 MB of weights add one second."""
    prepared = prepare(small_spec())
    held = sum(
        readiness.weight_bytes(prepared.spec.model, holding.slice) for holding in prepared.plan.holdings
    )
    assert held > 0
    assert ready_limit_s(prepared.spec, prepared.plan, 100.0) == pytest.approx(106.0 + held / 20e6)


def test_a_device_process_that_is_stopped_before_it_is_ready_ends_the_run(tmp_path):
    result = tmp_path / "result.json"
    subprocess.run(
        [sys.executable, "-m", "tests.support.stopped_run", str(result)],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=PATIENCE_S,
    )
    outcome, left = json.loads(result.read_text())
    assert outcome["kind"] == "failed"
    assert "d1 did not report the state 'listening' within 3 s of wall time" in outcome["sentence"]
    assert "LOOM_READY_S" in outcome["sentence"]
    assert left == 0
