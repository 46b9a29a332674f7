"""Flows on shared links: they end when they would if all rates were recomputed at every event."""

from math import nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.cluster import ClusterSpec
from engine.worlds.simulated.flows import Flow, SharedLinks, max_min_rates

NODES = 6
CLUSTER = ClusterSpec(
    name="star",
    source="d0",
    devices=[
        {"name": f"d{i}", "flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}
        for i in range(NODES)
    ],
    switches=[{"name": "s1"}],
    links=[{"a": f"d{i}", "b": "s1", "bit_per_s": 8.0 * (1 + i)} for i in range(NODES)],
)


def path_of(src, dst):
    return ((src, True), (dst, False))


class EveryRateAtEveryEvent:
    """The reference: all rates are recomputed whenever anything happens."""

    def __init__(self, capacity):
        self.capacity, self.down = dict(capacity), set()
        self.left, self.paths, self.at_s = {}, {}, 0.0

    def rates(self):
        def capacity(way):
            return 0.0 if way[0] in self.down else self.capacity[way]

        return dict(zip(self.paths, max_min_rates(self.paths.values(), capacity), strict=True))

    def run_until(self, time_s):
        """(name, end) of the flows that end by then."""
        ended = []
        while True:
            rates = self.rates()
            ends = {name: self.at_s + self.left[name] / rate for name, rate in rates.items() if rate}
            next_s = min([*ends.values(), time_s])
            for name, rate in rates.items():
                self.left[name] -= rate * (next_s - self.at_s)
            self.at_s = next_s
            done = [name for name, end_s in ends.items() if end_s <= next_s * (1 + 1e-12)]
            if not done:
                return ended
            for name in done:
                ended.append((name, next_s))
                del self.left[name], self.paths[name]


def run_until(links, time_s):
    ended = []
    while (end_s := links.next_end_s()) is not None and end_s <= time_s:
        ended += [(flow.on_done(), end_s) for flow in links.advance(end_s)]
        links.update_rates()
    links.advance(time_s)
    return ended


ranks = st.integers(0, NODES - 1)
pairs = st.tuples(ranks, ranks).filter(lambda pair: pair[0] != pair[1])
events = st.one_of(
    st.tuples(st.just("send"), pairs, st.integers(1, 60)),
    st.tuples(st.just("rate"), st.tuples(ranks, st.booleans()), st.integers(1, 99)),
    st.tuples(st.just("down"), ranks, st.booleans()),
    st.tuples(st.just("drop"), ranks, st.none()),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 5.0), events), max_size=25))
def test_flows_end_when_they_would_if_all_rates_were_recomputed_at_every_event(timed):
    links = SharedLinks(CLUSTER)
    plain = EveryRateAtEveryEvent(links.capacity)
    now_s, ended, expected = 0.0, [], []
    for number, (after_s, (kind, what, value)) in enumerate([*timed, (1e4, ("end", None, None))]):
        now_s += after_s
        ended += run_until(links, now_s)
        expected += plain.run_until(now_s)
        if kind == "send":
            links.add(Flow(path_of(*what), value, lambda number=number: number, what))
            plain.left[number], plain.paths[number] = 8.0 * value, path_of(*what)
        elif kind == "rate":
            links.set_rate(what, float(value))
            plain.capacity[what] = float(value)
        elif kind == "down":
            links.set_down(what, value)
            (plain.down.add if value else plain.down.discard)(what)
        elif kind == "drop":
            for flow in [flow for flow in links.flows if what in flow.ends]:
                links.remove(flow)
                del plain.left[flow.on_done()], plain.paths[flow.on_done()]
        links.update_rates()
        rates = plain.rates()
        assert {f.on_done(): f.bit_per_s for f in links.flows} == pytest.approx(rates, rel=1e-12)
    assert dict(ended) == pytest.approx(dict(expected), rel=1e-9)
    assert len(links.flows) == len(plain.paths)


def test_a_change_leaves_flows_alone_that_share_no_link_with_it():
    links = SharedLinks(CLUSTER)
    near, far = (Flow(path_of(*pair), 100, lambda: None, pair) for pair in ((0, 1), (2, 3)))
    links.add(near)
    links.add(far)
    links.update_rates()
    before = (far.bit_per_s, far.since_s, far.end_s)
    links.advance(1.0)
    links.set_rate((0, True), 1.0)
    links.update_rates()
    assert near.since_s == 1.0 and (far.bit_per_s, far.since_s, far.end_s) == before


def test_a_flow_on_a_link_that_is_down_never_ends_and_goes_on_when_it_is_up_again():
    links, flow = SharedLinks(CLUSTER), Flow(path_of(1, 2), 8, lambda: None, (1, 2))
    links.add(flow)
    links.update_rates()
    links.advance(1.0)
    links.set_down(2, True)
    links.update_rates()
    assert flow.bit_per_s == 0.0 and links.next_end_s() is None and flow.remaining_bits == 48.0
    links.advance(10.0)
    links.set_down(2, False)
    links.update_rates()
    assert links.next_end_s() == 13.0
    assert links.advance(13.0) == [flow] and not links.flows


def test_an_end_that_is_nearer_than_the_clocks_resolution_counts_as_reached():
    links, flow = SharedLinks(CLUSTER), Flow(path_of(1, 2), 1, lambda: None, (1, 2))
    for way in flow.route:
        links.set_rate(way, 1e10)
    links.advance(1e6)
    links.add(flow)
    links.update_rates()
    just_before_s = nextafter(links.next_end_s(), 0.0)
    assert 1e6 < just_before_s < links.next_end_s()
    assert links.advance(just_before_s) == [flow]
