"""What the scenario does to links: delays, losses and outages, in one direction or both."""

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import LinkDown, LinkUp, SetDelay, SetLoss, SetRate
from engine.worlds.simulated.links import LinkConditions
from tests.support.message_programs import star

A, B = 0, 1
"""The links a--s1 and b--s1; forward is towards the switch."""


def conditions(**first):
    cluster = star(delay_s=0.25).model_dump()
    cluster["links"][0].update(first)
    return LinkConditions(ClusterSpec.model_validate(cluster))


def test_links_start_as_they_were_drawn():
    links = conditions(reverse_delay_s=0.5, loss_frac=0.1, reverse_loss_frac=0.2)
    assert (links.delay_s[A, True], links.delay_s[A, False], links.delay_s[B, True]) == (0.25, 0.5, 0.25)
    assert (links.loss_frac[A, True], links.loss_frac[A, False], links.loss_frac[B, False]) == (0.1, 0.2, 0.0)


@pytest.mark.parametrize(
    ("direction", "delays"),
    [("both", (0.5, 0.5)), ("forward", (0.5, 0.25)), ("backward", (0.25, 0.5))],
)
def test_a_delay_is_changed_in_the_directions_that_are_named(direction, delays):
    links = conditions()
    links.apply(SetDelay(at_s=0, link="a--s1", delay_s=0.5, direction=direction))
    assert (links.delay_s[A, True], links.delay_s[A, False]) == delays
    assert links.delay_s[B, True] == links.delay_s[B, False] == 0.25


def test_a_loss_is_changed_in_the_direction_that_is_named():
    links = conditions()
    links.apply(SetLoss(at_s=0, link="b--s1", loss_frac=0.5, direction="backward"))
    assert (links.loss_frac[B, True], links.loss_frac[B, False]) == (0.0, 0.5)
    assert links.loss_frac[A, False] == 0.0


def test_a_rate_changes_neither_delay_nor_loss():
    links = conditions()
    links.apply(SetRate(at_s=0, link="a--s1", bit_per_s=1.0))
    assert (links.delay_s, links.loss_frac) == (conditions().delay_s, conditions().loss_frac)


def test_a_path_has_the_sum_of_its_delays():
    links = conditions()
    links.apply(SetDelay(at_s=0, link="b--s1", delay_s=0.125))
    assert links.path_delay_s(((A, True), (B, False))) == 0.375


def test_what_one_link_of_a_path_loses_the_next_does_not_carry():
    links = conditions(loss_frac=0.1)
    links.apply(SetLoss(at_s=0, link="b--s1", loss_frac=0.2, direction="backward"))
    links.apply(SetLoss(at_s=0, link="b--s1", loss_frac=0.5, direction="forward"))
    assert links.path_loss_frac(((A, True), (B, False))) == pytest.approx(1 - 0.9 * 0.8)
    assert links.path_loss_frac(((B, True), (A, False))) == pytest.approx(1 - 0.5 * 0.9)


def test_a_link_blocks_while_it_is_down_or_loses_everything_one_way():
    links = conditions()
    assert A not in links.blocked
    links.apply(LinkDown(at_s=0, link="a--s1"))
    assert links.blocked == {A}
    links.apply(SetLoss(at_s=0, link="a--s1", loss_frac=1.0, direction="backward"))
    links.apply(LinkUp(at_s=0, link="a--s1"))
    assert A in links.blocked
    links.apply(SetLoss(at_s=0, link="a--s1", loss_frac=0.99))
    assert A not in links.blocked
