"""Algorithm 1: the worked example with its numbers, the slot view, and the optimum by brute force."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.strategies.edgeformer.allocation import (
    HeadAllocation,
    Site,
    allocate,
    by_importance,
    even_split,
    li_scores,
    normalised,
    prune_to_deadline,
    pruned_by_score,
    slots_s,
)

MS = 1e-3
RAW = (0.9, 0.2, 0.75, 0.4, 0.1, 0.6, 0.95, 0.3)
IMPORTANCE = normalised(RAW)
COSTS_MS = (0.65536, 0.98304, 0.81920)


def sites(rooms=(8, 8, 8), costs_ms=COSTS_MS, fixed_ms=(0, 0, 0)):
    return [
        Site(i + 1, *rest)
        for i, rest in enumerate(
            (room, fixed * MS, cost * MS) for room, fixed, cost in zip(rooms, fixed_ms, costs_ms, strict=True)
        )
    ]


def counts(allocation, ranks=(1, 2, 3)):
    return tuple(len(allocation.heads_of(rank)) for rank in ranks)


def kept(allocation):
    """Numbered from 1, as the example does."""
    return [head + 1 for head, rank in enumerate(allocation.device_of) if rank != -1]


def test_importance_is_normalised_within_the_block():
    expected = (0.9412, 0.1176, 0.7647, 0.3529, 0, 0.5882, 1, 0.2353)
    assert normalised(RAW) == pytest.approx(expected, abs=5e-5)
    assert [head + 1 for head in by_importance(IMPORTANCE)] == [7, 1, 3, 6, 4, 8, 2, 5]
    assert normalised([0.3, 0.3]) == (1.0, 1.0)


def test_without_a_deadline_all_heads_are_balanced_and_the_owner_wins_ties():
    found = allocate(IMPORTANCE, sites())
    assert found.device_of == (3, 2, 2, 3, 3, 1, 1, 1)
    assert counts(found) == (3, 2, 3)
    assert found.collab_s == pytest.approx(2.4576 * MS)
    alone = allocate(IMPORTANCE, sites()[:1])
    assert alone.collab_s == pytest.approx(5.24288 * MS)


def test_a_deadline_of_two_milliseconds_prunes_the_least_important_head():
    found = allocate(IMPORTANCE, sites(), 2.0 * MS)
    assert counts(found) == (3, 2, 2)
    assert found.pruned == (4,)
    assert found.collab_s == pytest.approx(1.96608 * MS)
    scores = li_scores(IMPORTANCE, found, sites(), 0.8)
    assert scores[4] is None
    expected = (0.9529, 0.2608, 0.7784, 0.4824, 0.6373, 0.9667, 0.3549)
    assert [s for s in scores if s is not None] == pytest.approx(expected, abs=5e-5)


def test_the_literal_score_in_one_per_second_is_all_latency():
    """The second term of Eq. 15 is ours over the least time of a device, 1.63840 ms of device 2."""
    found = allocate(IMPORTANCE, sites(), 2.0 * MS)
    literal = [
        0.8 * value + (score - 0.8 * value) / (1.63840 * MS)
        for value, score in zip(IMPORTANCE, li_scores(IMPORTANCE, found, sites(), 0.8), strict=True)
        if score is not None
    ]
    assert literal == pytest.approx((122.82, 101.82, 102.34, 122.35, 102.20, 102.53, 101.91), abs=0.005)


def test_a_tighter_deadline_and_the_literal_check_keep_fewer_heads():
    tight = allocate(IMPORTANCE, sites(), 1.5 * MS)
    assert counts(tight) == (2, 1, 1)
    assert kept(tight) == [1, 3, 6, 7]
    literal = allocate(IMPORTANCE, sites(), 2.0 * MS, check="paper")
    assert counts(literal) == (1, 1, 1)
    assert kept(literal) == [1, 3, 7]


def test_storage_limits_how_many_heads_a_device_takes():
    found = allocate(IMPORTANCE, sites((3, 1, 8)))
    assert found.device_of == (3, 3, 2, 3, 3, 1, 1, 1)
    assert found.collab_s == pytest.approx(3.2768 * MS)
    scarce = allocate(IMPORTANCE, sites((0, 1, 2)))
    assert scarce.device_of == (2, -1, 3, -1, -1, -1, 3, -1)


@pytest.mark.parametrize(("rooms", "t_max_ms"), [((0, 0, 0), math.inf), ((8, 8, 8), 0.1)])
def test_without_room_or_time_every_head_is_pruned(rooms, t_max_ms):
    found = allocate(IMPORTANCE, sites(rooms), t_max_ms * MS)
    assert set(found.device_of) == {-1}
    assert found.collab_s == 0


def test_some_heads_may_be_kept_on_the_owner_whatever_the_deadline():
    found = allocate(IMPORTANCE, sites(), 0.1 * MS, min_keep=2)
    assert found.heads_of(1) == (0, 6)
    assert len(found.pruned) == 6
    assert allocate(IMPORTANCE, sites(), min_keep=2).device_of == allocate(IMPORTANCE, sites()).device_of


def test_an_unreachable_device_gets_nothing():
    found = allocate(IMPORTANCE, sites(costs_ms=(0.65536, math.inf, 0.8192)))
    assert counts(found) == (5, 0, 3)


def test_bands_put_the_most_important_heads_on_the_cheapest_device():
    found = allocate(IMPORTANCE, sites((3, 8, 2)), fill="bands")
    assert [found.device_of[head] for head in by_importance(IMPORTANCE)] == [1, 1, 1, 3, 3, 2, 2, 2]


def test_barred_heads_are_pruned_and_the_others_take_their_slots():
    found = allocate(IMPORTANCE, sites(), 1.5 * MS, barred=(6, 0))
    assert kept(found) == [3, 4, 6, 8]


def test_a_fixed_split_prunes_on_each_device_by_itself():
    split = even_split(8, (1, 2, 3))
    assert split == (1, 1, 1, 2, 2, 2, 3, 3)
    found = allocate(IMPORTANCE, sites(), 1.5 * MS, only=split)
    assert found.device_of == (1, -1, 1, -1, -1, 2, 3, -1)


COST = st.floats(0.1, 5)
CASES = st.tuples(
    st.lists(st.integers(0, 20), min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(0, 6), st.floats(0, 2), COST), min_size=1, max_size=4),
    st.floats(0.05, 12),
)


def built(case):
    raw, rows, t_max = case
    return normalised(raw), [Site(i, *row) for i, row in enumerate(rows)], t_max


@settings(max_examples=300, deadline=None)
@given(case=CASES, fill=st.sampled_from(["balance", "bands"]))
def test_the_retained_heads_are_the_best_that_fit_into_the_slots(case, fill):
    importance, where, t_max = built(case)
    assert all(0 <= value <= 1 for value in importance)
    found = allocate(importance, where, t_max, fill)
    slots = sum(
        min(site.room, max(0, math.floor((t_max * (1 + 1e-9) - site.fixed_s) / site.head_s)))
        for site in where
    )
    retained = [head for head, rank in enumerate(found.device_of) if rank != -1]
    assert len(retained) == min(len(importance), slots)
    assert sorted(by_importance(importance)[: len(retained)]) == retained
    assert len(retained) + len(found.pruned) == len(importance)
    assert all(len(found.heads_of(site.rank)) <= site.room for site in where)
    assert found.collab_s <= t_max * (1 + 1e-9)
    scores = [s for s in li_scores(importance, found, where, 0.8) if s is not None]
    assert all(0 <= s <= 1 + 1e-12 for s in scores)


@settings(max_examples=150, deadline=None)
@given(case=CASES)
def test_the_literal_check_never_retains_more_and_pruning_right_away_finds_nothing(case):
    importance, where, t_max = built(case)
    found = allocate(importance, where, t_max)
    literal = allocate(importance, where, t_max, check="paper")
    assert len(literal.pruned) >= len(found.pruned)
    assert prune_to_deadline(importance, found, where, t_max, 0.8).device_of == found.device_of


@settings(max_examples=150, deadline=None)
@given(case=CASES, factor=st.floats(1, 10))
def test_slower_links_and_shorter_deadlines_never_retain_more(case, factor):
    importance, where, t_max = built(case)
    retained = len(importance) - len(allocate(importance, where, t_max).pruned)
    slower = [site._replace(head_s=site.head_s * (factor if i else 1)) for i, site in enumerate(where)]
    assert len(importance) - len(allocate(importance, slower, t_max).pruned) <= retained
    assert len(importance) - len(allocate(importance, where, t_max / factor).pruned) <= retained


@settings(max_examples=60, deadline=None)
@given(
    heads=st.integers(1, 6),
    rows=st.lists(st.tuples(st.integers(1, 6), st.floats(0, 1), COST), min_size=1, max_size=3),
)
def test_balancing_is_optimal_for_equal_heads(heads, rows):
    where = [Site(i, *row) for i, row in enumerate(rows)]
    heads = min(heads, sum(site.room for site in where))
    best = min(
        max(site.busy_s(choice.count(site.rank)) for site in where)
        for choice in itertools.product(range(len(where)), repeat=heads)
        if all(choice.count(site.rank) <= site.room for site in where)
    )
    assert allocate([1.0] * heads, where).collab_s == pytest.approx(best)


def test_the_cost_of_every_head_on_every_candidate_is_evaluated_once():
    assert allocate(IMPORTANCE, sites()).evaluations == 8 * 3


def test_after_a_change_the_slowest_device_loses_its_lowest_scores():
    before = allocate(IMPORTANCE, sites())
    slower = sites(costs_ms=(0.65536, 2.0, 0.8192))
    after = prune_to_deadline(IMPORTANCE, before, slower, 2.5 * MS, 0.8)
    assert after.device_of == (3, -1, 2, 3, 3, 1, 1, 1)
    assert after.collab_s == pytest.approx(2.4576 * MS)
    lost = prune_to_deadline(IMPORTANCE, before, sites()[:2], math.inf, 0.8)
    assert lost.device_of == (-1, 2, 2, -1, -1, 1, 1, 1)
    assert isinstance(lost, HeadAllocation)


def test_after_a_change_the_smallest_number_of_heads_stays():
    before = allocate(IMPORTANCE, sites())
    for min_keep in range(9):
        after = prune_to_deadline(IMPORTANCE, before, sites(), 0.1 * MS, 0.8, min_keep)
        assert after.num_kept == min_keep
    lost = prune_to_deadline(IMPORTANCE, before, sites((8, 8, 8))[:1], math.inf, 0.8, min_keep=5)
    assert lost.device_of == (1, -1, 1, -1, -1, 1, 1, 1), "heads 7, 1 and 3 go to the owner"


def test_more_devices_than_heads_leaves_some_without():
    found = allocate([1.0, 0.5], [Site(i, 1, 0, 1.0) for i in range(5)])
    assert found.device_of == (0, 1)


def test_heads_that_other_devices_keep_count_as_kept():
    # the owner misses the deadline with any head; two heads are on the other device, which is enough
    sites = (Site(0, 4, 0.0, 10.0), Site(1, 4, 0.0, 1.0))
    found = allocate((0.9, 0.5, 0.4), sites, t_max_s=3.0, min_keep=2, only=(0, 1, 1))
    assert (found.device_of, found.collab_s) == ((-1, 1, 1), 2.0)


def test_the_li_score_decides_which_heads_are_pruned():
    # All heads: 0, 1, 2 and 4 on the owner, through after 4 s, and 3 on a neighbour, after 3.5 s. Two must go
    # for a deadline of 3 s. Eq. 15 of head 2: λ 0.6 + (1-λ) 3.5/4; of head 3: λ 0.5 + (1-λ).
    sites = [Site(0, 8, 0, 1.0), Site(1, 8, 0, 3.5)]
    importance = (1.0, 0.9, 0.6, 0.5, 0.4)
    assert allocate(importance, sites).device_of == (0, 0, 0, 1, 0)
    for weight, pruned in ((1.0, (3, 4)), (0.8, (3, 4)), (0.5, (2, 4)), (0.0, (2, 4))):
        found = pruned_by_score(importance, sites, 3.0, weight)
        assert (found.pruned, found.collab_s) == (pruned, 3.0), weight


def test_a_device_that_never_ends_a_head_has_no_slot():
    assert slots_s((Site(0, 2, 0.0, math.inf), Site(1, 2, 0.0, 1.0)), 2) == (1.0, 2.0)
