"""Rounds of measuring beside other work: repeated, or said of what was made of them."""

from types import SimpleNamespace

import pytest

from emulator.calibration import calibrate
from emulator.calibration.calibrate import Round, host_profile
from emulator.calibration.shapes import SHORT
from emulator.calibration.stopwatch import CoreShare
from engine.domain.host_times import ATTENTION, HostProfile, MeasuredPass
from tests.support.host_profiles import a_profile


@pytest.mark.parametrize(
    ("fracs", "least"),
    [
        ((1.0, 0.97), 0.97),
        ((0.5, 1.0, 0.6, 0.98), 0.98),  # the two disturbed ones do not count
        ((0.5, 0.6, 0.7, 0.8), 0.7),  # at most as many are repeated as there may be
    ],
)
def test_a_round_beside_other_work_is_repeated_and_a_profile_says_how_disturbed_its_rounds_were(
    fracs: tuple[float, ...], least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, between = list(fracs), list[str]()
    monkeypatch.setattr(calibrate, "TimedKernels", lambda torch: SimpleNamespace(crowd=None))
    monkeypatch.setattr(calibrate, "_round", lambda *given: Round({("call",): 1.0}, [], [], [], left.pop(0)))
    monkeypatch.setattr(calibrate, "as_tables", lambda times: a_profile("here"))
    attention = MeasuredPass(name=ATTENTION, overhead_s=0.0, s_per_element=0.0)
    monkeypatch.setattr(calibrate, "_attention_call", lambda *given: attention)
    few = SHORT._replace(rounds=2)
    profile = host_profile(few, between=lambda: between.append("between")).profile
    assert profile.core_frac == least and left == [] and len(between) == 2
    assert bool(profile.caution) == (least < 0.95)
    assert HostProfile.model_validate_json(profile.model_dump_json()) == profile


def test_the_share_of_a_core_is_processor_time_over_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wall_s, thread_s = iter((10.0, 14.0)), iter((1.0, 4.0))
    monkeypatch.setattr("emulator.calibration.stopwatch.time.perf_counter", lambda: next(wall_s))
    monkeypatch.setattr("emulator.calibration.stopwatch.time.thread_time", lambda: next(thread_s))
    with CoreShare() as share:
        pass
    assert share.frac == 0.75
