"""Copies of a cluster: their ranks are their own, their routes those of the links as drawn."""

import pytest

from engine.domain.errors import SpecError
from tests.support.small_clusters import cluster, link

SQUARE = cluster("a b c d", "", link("a", "b"), link("b", "d"), link("a", "c", 10e6), link("c", "d", 10e6))


def by(found, src, dst):
    return [found.links[hop.link].name for hop in found.path(found.rank(src), found.rank(dst))]


def test_the_ranks_of_a_copy_with_other_devices_are_its_own():
    assert SQUARE.rank("d") == 3
    fewer = SQUARE.model_copy(update={"devices": SQUARE.devices[1:]})
    assert [fewer.rank(name) for name in "bcd"] == [0, 1, 2]
    with pytest.raises(SpecError, match="no device a"):
        fewer.rank("a")


def test_the_routes_of_a_copy_with_changed_rates_are_those_as_drawn_though_none_was_asked_for_before():
    slow = tuple(one.model_copy(update={"bit_per_s": 1e3}) for one in SQUARE.links[:2])
    changed = SQUARE.without(()).model_copy(update={"links": (*slow, *SQUARE.links[2:])})
    assert by(changed, "a", "d") == ["a--b", "b--d"]


def test_a_cluster_made_anew_has_routes_over_its_own_links():
    slow = [one.model_dump() | {"bit_per_s": 1e3} for one in SQUARE.links[:2]]
    fresh = type(SQUARE).model_validate(
        SQUARE.model_dump() | {"links": [*slow, *(one.model_dump() for one in SQUARE.links[2:])]}
    )
    assert by(fresh, "a", "d") == ["a--c", "c--d"]


def test_devices_that_differ_in_name_node_and_price_alone_are_alike():
    devices = list(SQUARE.devices)
    devices[1] = devices[1].model_copy(update={"price_usd": 75.0, "price_source": "bought used, 2026"})
    devices[2] = devices[2].model_copy(update={"node": "garage"})
    devices[3] = devices[3].model_copy(update={"flop_per_s": 2 * devices[3].flop_per_s})
    assert SQUARE.first_alike == (0, 0, 0, 0)
    assert SQUARE.model_copy(update={"devices": tuple(devices)}).first_alike == (0, 0, 0, 3)
