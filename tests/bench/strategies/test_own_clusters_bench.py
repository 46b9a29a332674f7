"""Every paper's method does on its paper's clusters what the paper shows, or their card says why not."""

import pytest

import topologies
from bench.strategies.own_clusters import OWN
from bench.strategies.wins import SAME, best_of, predictions, spec_of
from engine.domain.errors import EdgeLoomError
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES

NOT_HERE = "Not shown here"
"""How the sentence of a description begins that says what the paper's effect would need."""


def seconds(own, name):
    """The predicted time with defaults; None without a plan, or where the run does not finish."""
    home = own.home
    try:
        report = predict(spec_of(home, name, home.params if name == home.strategy else {}))
    except EdgeLoomError:
        return None
    return report.latency_s if report.outcome.kind == "finished" else None


def named(own):
    return f"{own.home.cluster}, {own.home.workload.requests} requests"


def test_every_method_of_a_paper_has_a_cluster_of_its_own():
    papers = {one.name for one in STRATEGIES if not one.is_baseline}
    assert {own.home.strategy for own in OWN} == papers
    assert {rival for own in OWN for rival in own.rivals} < {one.name for one in STRATEGIES}


@pytest.mark.long("engine", "bench/strategies", "topologies")
@pytest.mark.parametrize("own", [own for own in OWN if own.rivals], ids=named)
def test_a_method_is_faster_than_its_papers_baselines_or_the_card_says_what_that_needs(own):
    times_s = [found_s for rival in own.rivals if (found_s := seconds(own, rival)) is not None]
    own_s = seconds(own, own.home.strategy)
    assert own_s is not None
    shown = own_s < min(times_s) if times_s else True
    assert shown or NOT_HERE in topologies.load(own.home.cluster).description


@pytest.mark.long("engine", "bench/strategies", "topologies")
@pytest.mark.parametrize("own", OWN, ids=named)
def test_a_method_is_the_fastest_of_all_on_its_papers_cluster_or_the_table_says_why_not(own):
    predicted = predictions(own.home)
    own_s = predicted.pop(own.home.strategy)
    names, other_s = best_of(predicted)
    assert bool(own.why) == (other_s <= SAME * own_s), f"{names} take {other_s:.3g} s, and it {own_s:.3g} s"
