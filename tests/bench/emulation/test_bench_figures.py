"""Figures that benchmarks make of what they measured: when a change took effect, rates, medians, verdicts."""

import pytest

from bench.emulation import changes
from bench.emulation.changes import AFTER_S, PERIOD_S, WINDOW_S, Arrival
from bench.emulation.messages import LONGEST_S, Message, _bit_per_s, _repeated, messages_table
from engine.domain.errors import HostError


def stream(start_s: float, stop_s: float, bit_per_s: float) -> list[Arrival]:
    """One arrival each millisecond."""
    count = round((stop_s - start_s) * 1e3)
    return [Arrival(start_s + index / 1e3, round(bit_per_s / 8e3)) for index in range(count)]


def test_a_rate_takes_effect_with_the_first_window_that_has_it() -> None:
    arrivals = stream(0.0, 1.0, 20e6) + stream(1.0, 2.0, 5e6)
    effect_s = changes._has_rate(5e6)(arrivals, 0.8)
    # a window that begins a little earlier is within the tolerance of 15 % already
    assert 1.0 - 0.1 * WINDOW_S < effect_s <= 1.0
    assert changes._has_rate(20e6)(arrivals, 0.25) == 0.25
    with pytest.raises(HostError, match="4e\\+07 bit/s never came into force"):
        changes._has_rate(40e6)(arrivals, 0.8)


def datagrams(*lost: tuple[float, float], delay_s: float = 0.0) -> list[Arrival]:
    times = [number * PERIOD_S for number in range(500)]
    return [Arrival(at_s + delay_s, 8, at_s) for at_s in times if not any(a <= at_s < b for a, b in lost)]


def test_a_cut_is_the_first_gap_and_its_end_the_last() -> None:
    arrivals = datagrams((0.4, 0.6))
    assert changes._first_gap(arrivals, 0.3) == pytest.approx(0.4 - PERIOD_S)
    assert changes._last_gap(arrivals, 0.3) == pytest.approx(0.6)
    assert changes._first_gap(arrivals, 0.5) == 0.5  # the gap had begun when the change was asked for


def test_without_a_gap_nothing_was_cut() -> None:
    assert changes._first_gap(datagrams(), 0.3) == 0.3 + AFTER_S
    assert changes._last_gap(datagrams((0.0, 0.2)), 0.3) == 0.3


def test_a_delay_takes_effect_with_the_first_datagram_that_has_it() -> None:
    arrivals = datagrams()[:200] + datagrams(delay_s=0.05)[200:]
    late = changes._first_with(lambda arrival: arrival.at_s - arrival.sent_s > 0.04)
    assert late(arrivals, 0.1) == 200 * PERIOD_S
    with pytest.raises(HostError, match="never came into force"):
        late(arrivals[:200], 0.1)


def test_a_flow_has_the_rate_of_what_came_between_two_arrivals() -> None:
    spans = [(1000, 0, 0.0, at_s, "n0") for at_s in (0.5, 1.0, 2.0, 3.0, 5.0)]
    assert _bit_per_s(spans, 0.9, 4.0) == 8 * 2000 / 2.0


def test_sizes_repeat_as_the_budget_allows_and_long_ones_are_left_out() -> None:
    sizes = list(_repeated(1e6))
    assert sizes.count(4 << 10) == 7  # 33 ms each
    assert sizes.count(64 << 10) == 5  # 0.524 s each, 3 s in all
    assert sizes.count(1 << 20) == 1  # 8.4 s
    assert 8 << 20 not in sizes and LONGEST_S < 8 * (8 << 20) / 1e6


def test_a_message_is_compared_by_its_median() -> None:
    one = Message(1e6, 0.0, "tbf", 4096, 2.0, (1.0, 3.0, 8.0))
    assert one.ratio == 1.5
    (row,) = messages_table([one]).rows
    assert row[-2:] == ("1.5000", "0.500…4.000")
