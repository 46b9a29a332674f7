"""The work of cores that bytes on a link are, found from what it takes from counters."""

import os
from functools import partial

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


@pytest.fixture
def cores(monkeypatch):
    """This host's, with a short stream, and with counters that say what the test wants to hear."""
    monkeypatch.setattr(link_work, "STREAM_S", 0.1)
    monkeypatch.setattr(link_work, "WARM_UP_S", 0.1)
    return len(os.sched_getaffinity(0))


def test_the_work_of_a_stream_is_divided_by_the_bytes_that_arrived(cores, monkeypatch):
    """Over loopback; the counters say that they reach three quarters of what they reach alone."""
    received = []

    def counted(functions):
        if len(functions) == cores:
            return [1000] * cores
        received.append(at_once(functions[:2])[0])
        return [received[0], None, *[750] * cores]

    monkeypatch.setattr(link_work, "at_once", counted)
    found = None
    while found is None:
        try:
            found = link_work.link_byte_s(LoopbackNetwork(star()))
        except HostError:  # others have this host: nobody is connected before it begins, or nothing arrives
            for name in ("STREAM_S", "WARM_UP_S"):
                monkeypatch.setattr(link_work, name, min(5.0, 2 * getattr(link_work, name)))
    assert received[-1] > 0
    assert found == pytest.approx(0.25 * cores * link_work.STREAM_S / received[-1])


def test_a_stream_of_which_nothing_arrives_is_an_error(cores, monkeypatch):
    def counted(functions):
        return [9] * cores if len(functions) == cores else [0, None, *[9] * cores]

    monkeypatch.setattr(link_work, "at_once", counted)
    with pytest.raises(HostError, match=r"no byte of a stream arrived within 0\.1 s"):
        link_work.link_byte_s(LoopbackNetwork(star()))


def test_counters_that_get_nowhere_are_an_error(cores, monkeypatch):
    monkeypatch.setattr(link_work, "at_once", lambda functions: [0] * len(functions))
    with pytest.raises(HostError, match="other processes use it up"):
        link_work.link_byte_s(LoopbackNetwork(star()))


def test_a_counter_counts_from_its_beginning_to_its_end(cores, monkeypatch):
    clock = iter([0.9, 1.0, 1.05, 1.2])
    monkeypatch.setattr(link_work.time, "monotonic", lambda: next(clock))
    core = min(os.sched_getaffinity(0))
    assert at_once([partial(link_work._count, core, 1.0)]) == [2]


def test_functions_run_at_once_give_their_results_in_order():
    assert at_once([lambda: 1.5, lambda: [2, "b"]]) == [1.5, [2, "b"]]


def test_a_process_that_dies_is_an_error():
    def dies():
        raise SystemExit

    with pytest.raises(HostError, match="died"):
        at_once([lambda: 1, dies])
