"""A drawing with measured figures: every pair is as it was measured, whatever links it shares with others."""

from __future__ import annotations

from itertools import permutations

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.network import Actual, PairMeasurement
from engine.domain.scenario import SetDelay, SetRate
from engine.models import catalogue
from engine.runs.as_measured import as_measured, changes_as_given, notes_on, pairs_of
from engine.runs.predict import predict
from tests.support.small_cases import spec_of, star
from tests.support.small_clusters import cluster, link, mesh

MODEL, _ = catalogue.resolve("tiny-llama", "random")
SWITCHED = cluster("a b c", "s", link("a", "s"), link("b", "s"), link("c", "s"))
UP = {"a": (50e6, 1e-3), "b": (20e6, 2e-3), "c": (80e6, 4e-3)}
DOWN = {"a": 100e6, "b": 10e6, "c": 60e6}
"""Rates up and down of each one's cable, and its delay."""


def measured_over_cables(names: tuple[str, ...]) -> tuple[PairMeasurement, ...]:
    found = []
    for src, dst in permutations(range(len(names)), 2):
        (up, delay_s), (_, more_s) = UP[names[src]], UP[names[dst]]
        found.append(PairMeasurement(src, dst, min(up, DOWN[names[dst]]), delay_s + more_s, 0.0))
    return tuple(found)


def with_pairs(drawn: ClusterSpec, pairs: tuple[PairMeasurement, ...]) -> ClusterSpec:
    return as_measured(drawn, Actual(pairs, (None,) * len(drawn.devices)))


def on_paths(found: ClusterSpec) -> list[tuple[float, float]]:
    pairs = permutations(range(len(found.devices)), 2)
    return [
        (min(found.links[hop.link].rate(hop.forward) for hop in found.path(*pair)), found.delay_s(*pair))
        for pair in pairs
    ]


def test_pairs_over_a_switch_are_as_measured_and_still_share_their_cables():
    pairs = measured_over_cables(("a", "b", "c"))
    found = with_pairs(SWITCHED, pairs)
    for (rate, delay_s), pair in zip(on_paths(found), pairs, strict=True):
        assert rate == pair.bit_per_s and delay_s == pytest.approx(pair.delay_s)
    assert [link.delay_s for link in found.links] == pytest.approx([1e-3, 2e-3, 4e-3])
    assert found.links[1].rate(True) == 20e6 and found.links[1].rate(False) == 10e6
    assert not notes_on(found, Actual(pairs, found.devices))


def test_links_between_two_devices_take_the_figures_of_each_direction():
    drawn = mesh(2)
    there, back = PairMeasurement(0, 1, 3e7, 2e-3, 0.01), PairMeasurement(1, 0, 4e7, 2e-3, 0.02)
    (found,) = with_pairs(drawn, (there, back)).links
    forward = found.a == drawn.devices[0].name
    for pair, way in ((there, forward), (back, not forward)):
        assert (found.rate(way), found.delay(way), found.loss(way)) == pytest.approx(pair[2:])


def test_links_that_are_slowed_have_the_lower_rate_and_the_longer_delay_of_each_pair():
    """Cables a and c give more than drawn, b less; of the delays, only c's is drawn longer."""
    drawn = {"a": (30e6, 0.5e-3), "b": (90e6, 1e-3), "c": (15e6, 9e-3)}
    links = (link(name, "s", rate, delay_s=delay) for name, (rate, delay) in drawn.items())
    desk = cluster("a b c", "s", *links)
    actual = Actual(measured_over_cables(("a", "b", "c")), (None,) * 3, slowed=True)
    found = as_measured(desk, actual)
    for (rate, delay_s), pair in zip(on_paths(found), actual.pairs, strict=True):
        names = "abc"[pair.src], "abc"[pair.dst]
        assert rate == min(pair.bit_per_s, *(drawn[name][0] for name in names))
        assert delay_s >= max(pair.delay_s, sum(drawn[name][1] for name in names)) - 1e-12
    used = {(row.sender, row.receiver): row for row in pairs_of(desk, actual)}
    assert (used["b", "a"].used_bit_per_s, used["b", "a"].used_delay_s) == (20e6, 3e-3), "as the network is"
    assert (used["a", "c"].used_bit_per_s, used["a", "c"].used_delay_s) == (15e6, 9.5e-3), "as drawn"


def test_a_change_of_a_link_gives_no_more_than_the_network_does():
    desk = mesh(2)
    there, back = PairMeasurement(0, 1, 3e7, 20.0, 0.0), PairMeasurement(1, 0, 4e7, 20.0, 0.0)
    actual, name = Actual((there, back), (None, None), slowed=True), desk.links[0].name
    more_s = 20.0 - desk.links[0].delay_s
    up, slower = SetRate(at_s=1, link=name, bit_per_s=9e9), SetRate(at_s=2, link=name, bit_per_s=3.5e7)
    later = SetDelay(at_s=3, link=name, delay_s=1.0, direction="forward")
    found = changes_as_given((up, slower, later), desk, actual)
    assert sorted(change.bit_per_s for change in found[:2]) == [3e7, 4e7]
    assert sorted(change.bit_per_s for change in found[2:4]) == [3e7, 3.5e7]
    assert [(change.at_s, change.direction, change.delay_s) for change in found[4:]] == [
        (3, "forward", pytest.approx(1.0 + more_s))
    ]


def test_a_pair_that_does_not_share_what_is_drawn_is_named():
    chain = cluster("a b c", "", link("a", "b"), link("b", "c"))
    pairs = tuple(PairMeasurement(*ends, 1e8, 1e-3, 0.0) for ends in permutations(range(3), 2))
    notes = notes_on(with_pairs(chain, pairs), Actual(pairs, chain.devices))
    assert len(notes) == 1 and "shared" not in notes[0] and "they do not share" in notes[0]


def test_a_calibrated_row_takes_the_place_of_drawn_rates_and_leaves_the_drawing_its_names():
    drawn = mesh(2)
    row = drawn.devices[1].model_copy(update={"name": "this-machine", "flop_per_s": 7e9, "memory_bytes": 1.0})
    found = as_measured(drawn, Actual((), (None, row)))
    assert found.devices[0] == drawn.devices[0]
    assert found.devices[1] == drawn.devices[1].model_copy(update={"flop_per_s": 7e9})
    assert notes_on(found, Actual((), (None, row))) == (
        f"Not calibrated, so predicted as drawn: {drawn.devices[0].name}.",
    )


def test_measured_as_drawn_the_prediction_is_the_same_and_the_table_has_both_columns_equal():
    spec = spec_of("megatron", MODEL, star((1e8,) * 2))
    paths = on_paths(spec.cluster)
    ends = permutations(range(len(spec.cluster.devices)), 2)
    pairs = tuple(
        PairMeasurement(*pair, rate, delay_s, 0.0) for pair, (rate, delay_s) in zip(ends, paths, strict=True)
    )
    found = with_pairs(spec.cluster, pairs)
    again = predict(spec.model_copy(update={"cluster": found}))
    assert again.latency_s == pytest.approx(predict(spec).latency_s)
    for row in pairs_of(spec.cluster, Actual(pairs, (None,) * len(spec.cluster.devices))):
        assert (row.drawn_bit_per_s, row.drawn_delay_s) == (row.measured_bit_per_s, row.measured_delay_s)
