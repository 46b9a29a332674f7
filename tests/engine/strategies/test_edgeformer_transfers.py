"""EdgeFormer learns from its own transfers how fast its links really are."""

import pytest

from engine.domain.scenario import Scenario, SetLoss
from engine.domain.trace import Mark
from engine.strategies.edgeformer.costs import AttentionRows, sites_of
from engine.strategies.edgeformer.transfers import Observed, Transfer, Transfers
from tests.support.small_cases import GPT2, play, spec_of, star


def test_the_average_counts_every_new_transfer_half_and_is_relative_to_the_first():
    transfers = Transfers()
    for ratio, average in ((2.0, 1.0), (4.0, 1.5), (4.0, 1.75), (2.0, 1.375)):
        transfers.observe(Transfer(1, ratio))
        assert transfers.average[1] == pytest.approx(average)
    transfers.forget()
    transfers.observe(Transfer(1, 9.0))
    assert transfers.average == {1: 1.0}


def test_small_changes_are_noise():
    transfers = Transfers()
    for rank, ratios in ((1, (1, 1.9)), (2, (1, 2.1)), (3, (1, 0.1)), (4, (1, 0.5))):
        for ratio in ratios:
            transfers.observe(Transfer(rank, ratio))
    assert transfers.slowdowns() == pytest.approx({2: 1.55, 3: 0.55})


def test_a_slower_path_makes_the_moves_of_its_heads_dearer():
    cluster, rows = star([1e6] * 3), AttentionRows(1, 32, 32)
    usual = sites_of(cluster, GPT2, 0, [1, 2], 4, [4, 4, 4], rows, "corrected")
    slower = sites_of(cluster, GPT2, 0, [1, 2], 4, [4, 4, 4], rows, "corrected", {2: 3.0})
    assert slower[:2] == usual[:2]
    moved_s = 4 * 32 * 8 * 4 * 8 / 1e8
    assert slower[2].head_s == pytest.approx(usual[2].head_s + 2 * moved_s)


def test_a_decision_repeats_what_was_measured():
    observed = Observed([Transfer(2, 1.5)])
    assert observed() == observed.prior() == [[2, 1.5]]


def heads_over_time(loss_frac, **params):
    """The allocations of 12 requests on slow devices and links; from the third on, packets are lost."""
    cluster = star([3e6] * 3)
    slow = tuple(link.model_copy(update={"bit_per_s": 2e6}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": slow})
    spec = spec_of(
        "edgeformer", GPT2, cluster, rows=60, new_tokens=1, requests=12, lending="paper", t_max=1.0, **params
    )
    usual = [m.time_s for m in play(spec) if isinstance(m, Mark) and m.name == "request_finished"]
    change = SetLoss(at_s=usual[2], link="d1--s1", loss_frac=loss_frac)
    from engine.runs.predict import prepare, simulate

    trace, outcome = simulate(prepare(spec.model_copy(update={"scenario": Scenario(changes=(change,))})))
    assert outcome.kind == "finished", outcome.sentence
    marks = [item for item in trace if isinstance(item, Mark)]
    lent = [m.facts["device_of"].count(1) for m in marks if m.name == "heads"]
    return lent, [m.facts["slowdowns"] for m in marks if m.name == "transfers_changed"]


def test_lost_packets_that_no_rate_announces_take_heads_from_the_neighbour():
    lent, changes = heads_over_time(0.3)
    assert lent[0] > 0
    assert lent[-1] < lent[0]
    assert changes and set(changes[0]) == {"d1"}
    lent, changes = heads_over_time(0.3, bandwidth="announced")
    assert set(lent) == {lent[0]} and not changes


def test_while_nothing_changes_no_transfer_counts_as_changed():
    lent, changes = heads_over_time(0.0)
    assert set(lent) == {lent[0]} and not changes
