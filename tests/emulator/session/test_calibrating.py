"""A calibration is asked for: it waits for its turn, can be stopped, and keeps what it has measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.calibration.calibrate import Measured, Raw
from emulator.calibration.known import host_name, known_calibration, time_needed_s
from emulator.calibration.shapes import SHORT, THOROUGH, Extent
from emulator.host.places import queue_name
from emulator.session import calibrating
from emulator.session.turns import turn
from engine.domain.cache_directory import cache_directory
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import Cancelled
from tests.support.host_profiles import a_profile

RAW = Raw((("call", 1e-6, 1.1e-6),), (("gpt2-128", "ffn", 8, 1e-4, 1.2e-4),))


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("EDGELOOM_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Let measuring take no time; the arguments of each."""
    asked: list[tuple[Any, ...]] = []
    device = DeviceSpec(name="this-machine", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10)
    found = Calibration(profile=a_profile(host_name()), device=device)

    def measured_steps(extent: Extent, models: Any, rows: Any, progress: Any, check: Any) -> Measured:
        asked.append((extent, models, rows))
        progress("kernels")
        check()
        return Measured(found, (), (), RAW)

    monkeypatch.setattr(calibrating, "expect_emulations", lambda: None)
    monkeypatch.setattr(calibrating, "measured_steps", measured_steps)
    monkeypatch.setattr(calibrating, "with_link_messages", lambda found, extent, call: found)
    return asked


def test_a_calibration_is_kept_with_its_measurements(measurements: list[tuple[Any, ...]]) -> None:
    assert known_calibration() is None
    found = calibrating.calibrate_host(SHORT)
    assert known_calibration() == found.calibration
    assert measurements == [(SHORT, (), ())]
    kept = json.loads((cache_directory() / "calibration-raw.json").read_text())
    assert kept["host"] == host_name()
    assert kept["measured"] == json.loads(json.dumps(RAW._asdict()))


def test_only_a_thorough_one_times_models_to_be_tested_on(measurements: list[tuple[Any, ...]]) -> None:
    calibrating.calibrate_host(THOROUGH)
    assert measurements[0][1]


def test_it_measures_beside_no_run_and_can_be_stopped_while_it_waits(
    measurements: list[tuple[Any, ...]],
) -> None:
    said: list[str] = []

    def stop() -> None:
        if said:
            raise Cancelled("stopped")

    with turn(queue_name(), lambda ahead: None), pytest.raises(Cancelled):
        calibrating.calibrate_host(SHORT, said.append, stop)
    (waits,) = said
    assert waits.startswith("waiting: 1 run ahead on this machine, a run of ") and measurements == []


def test_one_that_is_stopped_leaves_what_was_known_and_the_turn_to_the_next(
    measurements: list[tuple[Any, ...]],
) -> None:
    first = calibrating.calibrate_host(SHORT)
    said: list[str] = []

    def stop() -> None:
        if "kernels" in said:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        calibrating.calibrate_host(SHORT, said.append, stop)
    assert known_calibration() == first.calibration
    calibrating.calibrate_host(SHORT)


def test_it_takes_longer_where_others_use_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    for load, times in ((0.0, 1.0), (1.0, 1.0), (7.0, 4.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert time_needed_s(SHORT) == times * SHORT.quiet_s
