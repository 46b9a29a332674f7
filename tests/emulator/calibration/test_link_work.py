"""The work of cores that bytes on a link are, found from what it takes from counters."""

import math

import pytest

from emulator.calibration import link_work
from emulator.calibration.children import at_once
from engine.domain.errors import HostError
from engine.domain.network import LoopbackNetwork
from tests.support.message_programs import star


def test_the_work_is_what_the_counters_of_all_cores_lack():
    # a quarter of one core and half of the other
    found = link_work.work_s([1000, 400], [750, 200])
    assert found == pytest.approx(0.75 * link_work.STREAM_S)


def test_a_counter_that_got_further_beside_others_is_no_negative_work():
    assert link_work.work_s([1000, 400], [1100, 400]) == 0.0


def test_bytes_over_loopback_are_work(monkeypatch):
    monkeypatch.setattr(link_work, "STREAM_S", 0.1)
    monkeypatch.setattr(link_work, "WARM_UP_S", 0.1)
    found = link_work.link_byte_s(LoopbackNetwork(star()))
    assert math.isfinite(found) and found >= 0.0


def test_functions_run_at_once_give_their_results_in_order():
    assert at_once([lambda: 1.5, lambda: [2, "b"]]) == [1.5, [2, "b"]]


def test_a_process_that_dies_is_an_error():
    def dies():
        raise SystemExit

    with pytest.raises(HostError, match="died"):
        at_once([lambda: 1, dies])
