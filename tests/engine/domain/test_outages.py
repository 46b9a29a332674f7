"""Which links are down: those of dropped devices until they join, and those that were taken down by hand."""

import pytest

from engine.domain.conditions import Conditions
from engine.domain.outages import Outages, reaches
from engine.domain.scenario import DropDevice, JoinDevice, LinkDown, LinkUp, SetLoss, SetRate
from tests.support.small_clusters import cluster, link

RING = cluster("a b c d", "", link("a", "b"), link("b", "c"), link("c", "d"), link("d", "a"))
AB, BC, CD, DA = range(4)


def after(*changes):
    outages = Outages(RING)
    for change in changes:
        outages.apply(change)
    return outages


def drop(name, at_s=1.0):
    return DropDevice(at_s=at_s, device=name)


def join(name, at_s=2.0):
    return JoinDevice(at_s=at_s, device=name)


def down(name, at_s=0.5):
    return LinkDown(at_s=at_s, link=name)


def up(name):
    return LinkUp(at_s=3.0, link=name)


@pytest.mark.parametrize(
    ("changes", "links"),
    [
        ((), set()),
        ((drop("b"),), {AB, BC}),
        ((drop("b"), join("b")), set()),
        ((drop("b"), drop("c")), {AB, BC, CD}),
        ((drop("b"), drop("c"), join("b")), {BC, CD}),  # the link to c is still down
        ((down("a--b"), drop("b"), join("b")), {AB}),  # somebody else took it down
        ((drop("b"), down("b--a"), join("b")), {AB}),
        ((drop("b"), up("a--b")), {AB, BC}),  # its device is not there
        ((down("a--b"), drop("b"), up("a--b"), join("b")), set()),
        ((drop("b"), drop("b"), join("b")), set()),
        ((join("b"),), set()),
        ((SetRate(at_s=0, link="a--b", bit_per_s=1.0),), set()),
    ],
)
def test_the_links_that_are_down_after_these_changes(changes, links):
    assert after(*changes).down == links


def test_a_link_is_down_since_the_first_change_that_keeps_it_down():
    outages = after(drop("b", 1.0), down("a--b", 2.0), drop("c", 4.0))
    assert (outages.since_s([AB]), outages.since_s([CD]), outages.since_s([CD, BC])) == (1.0, 4.0, 1.0)
    assert outages.since_s([DA]) is None
    outages.apply(join("b"))
    assert (outages.since_s([AB]), outages.since_s([BC])) == (2.0, 4.0)


def test_a_link_that_is_taken_down_again_is_down_since_the_first_time_until_it_is_up():
    outages = after(down("a--b", 1.0), down("a--b", 2.0), drop("c", 3.0), drop("c", 4.0))
    assert (outages.since_s([AB]), outages.since_s([CD])) == (1.0, 3.0)
    for change in (LinkUp(at_s=5.0, link="a--b"), down("a--b", 6.0), join("c"), drop("c", 7.0)):
        outages.apply(change)
    assert (outages.since_s([AB]), outages.since_s([CD])) == (6.0, 7.0)


def test_two_devices_reach_each_other_over_the_links_of_their_routes_alone():
    assert reaches(RING, {CD}, 0, 1) and not reaches(RING, {AB}, 0, 1)
    # a and c are two hops apart; the route over b is the one that counts, as no link changes it
    there = {hop.link for hop in RING.path(0, 2)}
    assert not reaches(RING, {next(iter(there))}, 0, 2)
    assert reaches(RING, {AB, BC, CD, DA} - there - {hop.link for hop in RING.path(2, 0)}, 0, 2)


def test_a_link_that_loses_everything_in_one_direction_cuts_a_device_off():
    now = Conditions(RING)
    assert now.reaches_source(1) and now.blocked == set()
    now.apply(SetLoss(at_s=0, link="b--a", loss_frac=1.0, direction="backward"))
    assert now.blocked == {AB} and not now.reaches_source(1) and now.reaches_source(3)
