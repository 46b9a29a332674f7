"""Results that took the times of a host are stale once the host is calibrated anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from emulator.calibration.known import calibration_file, keep
from engine.domain.calibration import Calibration, calibration_digest
from engine.experiments.results.rows import Result
from tests.support.experiments import fields
from tests.support.host_profiles import a_profile
from tests.support.small_clusters import device
from tests.support.waiting_points import keep as keep_point
from webapp.experiments import answers, executions, points, services, versions
from webapp.experiments.answers import rows
from webapp.jobs import workers
from webapp.runs.models import Run

ME = workers.this_worker("points@here")


def result(point: Run, calibration: str) -> Result:
    about: dict[str, Any] = {"digest": point.digest, "world": "predicted", "outcome": "finished"}
    return Result(calibration=calibration, **about)


@pytest.mark.django_db
def test_another_calibration_marks_a_result_as_stale_and_repeating_it_computes_it_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions, "announce", lambda count: None)
    anna = User.objects.create_user("anna")
    experiment = services.create(services.parse(fields(), None), None, anna)
    execution = executions.start(experiment)
    measured, modelled = points.take(ME, 2)
    keep_point(measured, result(measured, "old"), 0.1)
    keep_point(modelled, result(modelled, ""), 0.1)
    monkeypatch.setattr(versions, "present_calibration", lambda: "old")
    assert answers.num_stale(execution) == 0
    monkeypatch.setattr(versions, "present_calibration", lambda: "new")
    assert [row["stale"] for row in rows(execution) if row["outcome"]] == [
        "another calibration of the host",
        "",
    ]
    assert answers.num_stale(execution) == 1
    assert executions.retry(experiment, stale=True) == 1
    states = execution.cells.values_list("run__status", flat=True)
    assert sorted(states) == ["finished", "waiting", "waiting", "waiting"]


def test_the_server_reads_the_calibration_of_this_machine(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings.CALIBRATION_FILE = calibration_file()
    assert versions.present_calibration() == ""
    calibration = Calibration(profile=a_profile("here"), device=device("here"))
    keep(calibration, raw={})
    assert versions.present_calibration() == calibration_digest(calibration.profile)
