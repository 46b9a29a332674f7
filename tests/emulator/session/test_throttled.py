"""What a run reports does not depend on how fast the worker is that emulated it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.domain.report import RunReport
from tests.support.throttled_run import share_of_a_core

pytestmark = [pytest.mark.root, pytest.mark.alone]
PATIENCE_S = 600
TRIES = 5
"""Other work of the host makes a run invalid, and none valid."""


def report_of(share: float, folder: Path) -> RunReport:
    out = folder / f"report-{share}.json"
    line = (sys.executable, "-m", "tests.support.throttled_run", str(share), str(out))
    subprocess.run(line, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=PATIENCE_S)
    return RunReport.model_validate_json(out.read_text())


def test_a_run_on_a_worker_with_half_a_core_agrees_with_the_same_run_on_a_whole_one(
    tmp_path: Path, state_directory: Path
) -> None:
    """At native speed, half a core makes this run 2.2 times as long."""
    try:
        with share_of_a_core(0.5):
            pass
    except OSError as error:
        pytest.skip(f"this machine does not let a process make a control group for its cores: {error}")
    for _ in range(TRIES):
        fast, slow = report_of(0.0, tmp_path), report_of(0.5, tmp_path)
        if fast.fidelity.valid and slow.fidelity.valid:
            break
    assert fast.fidelity.valid and slow.fidelity.valid, (fast.fidelity.why, slow.fidelity.why)
    assert fast.correctness.ok and slow.correctness.ok
    limit = fast.fidelity.latency_limit
    assert slow.latency_s == pytest.approx(fast.latency_s, rel=limit)
    assert slow.ttft_s == pytest.approx(fast.ttft_s, rel=limit)
    assert [link.bytes for link in slow.links] == [link.bytes for link in fast.links]
