"""Rounds of measuring beside other work: repeated, or said of what was made of them."""

from typing import Any

import pytest

from emulator.calibration import calibrate, stopwatch
from emulator.calibration.calibrate import host_profile
from emulator.calibration.shapes import SHORT
from emulator.calibration.stopwatch import CoreShare
from engine.domain.host_times import HostProfile


class Shares:
    """Gives the rounds of measuring these parts of a core, one after the other."""

    def __init__(self, *fracs: float):
        self.fracs = list(fracs)

    def __enter__(self) -> Any:
        self.frac = self.fracs.pop(0)
        return self

    def __exit__(self, *error: object) -> None:
        pass


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
    shares, between = Shares(*fracs), list[str]()
    monkeypatch.setattr(calibrate, "CoreShare", lambda: shares)
    few = SHORT._replace(kernel_rows=(1, 32), kernel_sides=(32, 64), rounds=2)
    profile = host_profile(few, between=lambda: between.append("between")).profile
    assert profile.core_frac == least and shares.fracs == [] and len(between) == 2
    assert bool(profile.caution) == (least < 0.95)
    assert HostProfile.model_validate_json(profile.model_dump_json()) == profile


def test_the_share_of_a_core_is_processor_time_over_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wall_s, thread_s = iter((10.0, 14.0)), iter((1.0, 4.0))
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(wall_s))
    monkeypatch.setattr(stopwatch.time, "thread_time", lambda: next(thread_s))
    with CoreShare() as share:
        pass
    assert share.frac == 0.75
