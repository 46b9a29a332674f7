"""Which links are measured together, and which of several measurements of a link counts."""

import select
import socket
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.network import measure
from emulator.network.measure import Achieved, LinkTransfer, measure_links, plan_waves, waiting_bytes


def transfer(link: int, bit_per_s: float, forward: bool = True) -> LinkTransfer:
    return LinkTransfer(link, forward, 0, 0, "", bit_per_s)


@given(
    st.lists(st.tuples(st.floats(1e5, 1e9), st.booleans()), max_size=12),
    st.sampled_from([0.0, 1e7, 6e8]),
)
def test_waves_have_every_link_once_one_direction_each_and_no_more_than_the_host_carries(drawn, limit):
    transfers = [transfer(link, rate, forward) for link, (rate, forward) in enumerate(drawn)]
    waves = plan_waves(transfers, limit)
    assert sorted(one for wave in waves for one in wave) == sorted(transfers)
    for wave in waves:
        assert len({one.forward for one in wave}) == 1
        assert len(wave) == 1 or sum(one.bit_per_s for one in wave) <= limit


def test_links_that_fit_together_are_measured_together() -> None:
    made = [transfer(0, 100.0), transfer(1, 300.0), transfer(2, 200.0), transfer(3, 300.0)]
    assert [[one.link for one in wave] for wave in plan_waves(made, 600.0)] == [[1, 3], [2, 0]]


def test_what_came_before_the_timing_began_is_not_in_the_rate() -> None:
    """The reader was late: 20 of 24 chunks wait already, and the others come later than half a second."""
    chunk, late_s = 1000, 0.5
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as a,
    ):
        b, _ = server.accept()
        with b:
            a.sendall(bytes(20 * chunk))
            b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 20 * chunk)
            assert select.select([b], [], [], 60)[0] and waiting_bytes(b) == 20 * chunk

            def send_the_rest() -> None:
                while waiting_bytes(b) == 20 * chunk:  # until timing has begun, however busy the host is
                    time.sleep(0.001)
                time.sleep(late_s)
                a.sendall(bytes(4 * chunk))

            rest = threading.Thread(target=send_the_rest)
            rest.start()
            rate = measure._timed(b, chunk, 0)
            rest.join()
    assert 0 < rate <= 4 * chunk * 8 / late_s


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[list[list[int]]]:
    """Every measurement's waves of link numbers; link 1 looks slow at first, and link 2 always does."""
    tries: list[list[list[int]]] = []

    def answer(waves: Sequence[Sequence[LinkTransfer]], budget_s: float, most_s: float) -> Achieved:
        tries.append([[one.link for one in wave] for wave in waves])
        first = len(tries) == 1
        assert most_s == (measure.FIRST_SECONDS if first else measure.AGAIN_SECONDS)
        rates = {0: 99.0, 1: 80.0 if first else 101.0, 2: 50.0 + len(tries)}
        return {(one.link, one.forward): rates[one.link] for wave in waves for one in wave}

    monkeypatch.setattr(measure, "_measure", answer)
    monkeypatch.setattr(measure, "TOGETHER_BIT_PER_S", 1600.0)
    return tries


def test_a_link_that_looks_slow_is_measured_again_in_less_company_and_its_best_figure_counts(measured):
    found = measure_links([transfer(link, 100.0) for link in range(3)])
    assert measured == [[[0, 1, 2]], [[1, 2]], [[2]], [[2]]]
    assert found == {(0, True): 99.0, (1, True): 101.0, (2, True): 54.0}


def test_a_figure_nearer_to_the_asked_rate_replaces_a_worse_one_only(measured, monkeypatch):
    monkeypatch.setattr(measure, "RETRY_SHARES", (0.0, 0.0))
    rates = iter([104.0, 108.0, 97.5])
    monkeypatch.setattr(measure, "_measure", lambda waves, budget_s, most_s: {(0, True): next(rates)})
    assert measure_links([transfer(0, 100.0)]) == {(0, True): 97.5}
