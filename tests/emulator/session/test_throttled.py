"""What a run reports does not depend on how fast the worker is that emulated it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.domain.report import RunReport
from tests.support.throttled_run import HALF, share_of_a_core

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.long("emulator/session", "engine/runs", "engine/worlds/real", "tests/support"),
]
PATIENCE_S = 600
TRIES = 5
"""Other work of the host makes a run invalid, and none valid."""


def reports(folder: Path) -> tuple[RunReport, RunReport]:
    """Of a run with a whole core, and of one with half of it."""
    files = folder / "whole.json", folder / "half.json"
    line = (sys.executable, "-m", "tests.support.throttled_run", *map(str, files))
    subprocess.run(line, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=PATIENCE_S)
    whole, half = (RunReport.model_validate_json(file.read_text()) for file in files)
    return whole, half


def test_a_run_on_a_worker_with_half_a_core_agrees_with_the_same_run_on_a_whole_one(
    tmp_path: Path, state_directory: Path
) -> None:
    """At native speed, half a core makes this run 2.2 times as long."""
    try:
        with share_of_a_core(HALF):
            pass
    except OSError as error:
        pytest.skip(f"this machine does not let a process make a control group for its cores: {error}")
    for _ in range(TRIES):
        fast, slow = reports(tmp_path)
        if fast.fidelity.valid and slow.fidelity.valid:
            break
    assert fast.fidelity.valid and slow.fidelity.valid, (fast.fidelity.why, slow.fidelity.why)
    assert fast.correctness.ok and slow.correctness.ok
    limit = fast.fidelity.latency_limit
    assert slow.latency_s == pytest.approx(fast.latency_s, rel=limit)
    assert slow.ttft_s == pytest.approx(fast.ttft_s, rel=limit)
    assert [link.bytes for link in slow.links] == [link.bytes for link in fast.links]
