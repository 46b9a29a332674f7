"""Every paper's method does on its paper's clusters what the paper shows, or their card says why not."""

from functools import cache

import pytest

import topologies
from bench.strategies.own_clusters import OWN, predicted
from bench.strategies.wins import SAME, best_of
from engine.strategies.registry import STRATEGIES

NOT_HERE = "Not shown here"
"""How the sentence of a description begins that says what the paper's effect would need."""
OUTSIDE_PAPERS = ("voltage-6", "mcu-8")
"""Clusters of papers that lie among those for everybody."""
OF_FAILURES = ("papers/adaptlink-gateway",)
"""Clusters on which a paper shows what happens when a device fails, which the showcases compare."""

NUMBERS = range(len(OWN))


@cache
def seconds(number):
    return predicted(OWN[number])


def named(number):
    own = OWN[number]
    return f"{own.home.cluster}, {own.home.workload.prompt_tokens}, {own.home.workload.requests} requests"


def test_every_method_of_a_paper_has_a_cluster_of_its_own():
    papers = {one.name for one in STRATEGIES if not one.is_baseline}
    assert {own.home.strategy for own in OWN} == papers
    assert {rival for own in OWN for rival in own.rivals} < {one.name for one in STRATEGIES}


def test_every_cluster_of_a_paper_is_in_the_table_or_its_card_says_what_the_effect_needs():
    compared = {own.home.cluster for own in OWN}
    for name in (*topologies.paper_names(), *OUTSIDE_PAPERS):
        known = name in compared or name in OF_FAILURES
        assert known or NOT_HERE in topologies.load(name).description, name


@pytest.mark.long("engine", "bench/strategies", "topologies")
@pytest.mark.parametrize("number", NUMBERS, ids=named)
def test_a_method_is_faster_than_its_papers_baselines_or_the_card_says_what_that_needs(number):
    own = OWN[number]
    found = seconds(number)
    times_s = [found[rival] for rival in own.rivals if rival in found]
    if own.alone:
        times_s.append(own.alone_s)
    shown = found[own.home.strategy] * SAME < min(times_s) if times_s else True
    assert shown or NOT_HERE in topologies.load(own.home.cluster).description


@pytest.mark.long("engine", "bench/strategies", "topologies")
@pytest.mark.parametrize("number", NUMBERS, ids=named)
def test_a_method_is_the_fastest_of_all_on_its_papers_cluster_or_the_table_says_why_not(number):
    own = OWN[number]
    others = dict(seconds(number))
    own_s = others.pop(own.home.strategy)
    names, other_s = best_of(others)
    assert bool(own.why) == (other_s <= SAME * own_s), f"{names} take {other_s:.3g} s, and it {own_s:.3g} s"
