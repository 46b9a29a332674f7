"""The mapping table: the worked distances, hits and misses, forgetting, and clusters by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.strategies.edgeformer.table import MappingTable, average_link

QUERY = np.array([2 / 3, 2 / 3, 2 / 3, 1, 1, 2, 1])
B1 = QUERY + np.array([0.3, 0, 0, 0, 0, 0, 1])
B2 = QUERY + np.array([0, 0.1, 0, 0.1, 1, -1, -1])


def table(tau=0.6, zeta=0.6, unit=False, width=4, **options):
    return MappingTable(width, zeta, tau, unit, **options)


def known(found, features):
    """The importance of every head that is a hit, None for the others."""
    raw, hit = found.lookup(features)
    hits = zip(raw, hit, strict=True) if raw else [(0.0, False)] * len(features)
    return [value if close else None for value, close in hits]


def heads(seed, num_heads=8, width=16, points=64):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(num_heads, width + points))


def test_the_worked_distances_and_the_nearer_head_is_the_hit():
    found = table()
    rows = found.scaled(np.stack((QUERY, QUERY)))
    others = found.scaled(np.stack((B1, B2)))
    assert found.sim(rows, others) == pytest.approx((0.32845, 0.30324), abs=5e-6)
    found.learn(np.stack((B1, B2)), [0.1, 0.2])
    assert known(found, QUERY[None]) == [0.2]


def test_an_empty_table_misses():
    assert known(table(), QUERY[None]) == [None]


def test_a_negative_threshold_always_misses():
    found = table(tau=-0.1)
    found.learn(QUERY[None], [0.5])
    assert known(found, QUERY[None]) == [None]


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("tau", [0.0, 0.3, 0.6])
def test_the_same_input_twice_is_all_hits_with_the_same_importance(tau, unit):
    found = table(tau, unit=unit, width=16)
    features, raw = heads(1), list(np.linspace(0, 1, 8))
    assert known(found, features) == [None] * 8
    found.learn(features, raw)
    assert known(found, features) == raw


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), tau=st.floats(0, 1.5), again=st.booleans())
def test_heads_that_were_added_are_found_again(seed, tau, again):
    found = table(tau, unit=True, width=4)
    features = np.concatenate([heads(seed + i, 5, 4, 3) * 0.3 + 1 for i in range(3)])
    found.learn(features, [0.5] * 15)
    assert None not in known(found, features)
    if again:
        found.recluster()
        assert len(np.unique(found.cluster)) == len(found.centroids)


def test_unit_features_make_the_distance_independent_of_scale():
    features = heads(3)
    found = table(0.01, unit=True, width=16)
    found.learn(features, [1.0] * 8)
    assert None not in known(found, features * 50)
    literal = table(0.01, unit=False, width=16)
    literal.learn(features, [1.0] * 8)
    assert set(known(literal, features * 50)) == {None}


def test_a_head_without_any_product_has_cosine_zero_with_everything():
    found = table(unit=False)
    silent = np.array([1.0, 0, 0, 0, 0, 0, 0])
    rows = found.scaled(np.stack((silent, silent)))
    assert found.sim(rows, rows).tolist() == [0.6, 0.6]


def test_a_head_that_is_not_known_has_the_importance_of_its_nearest_entry():
    found = table(tau=0.31)
    found.learn(np.stack((B1, B2)), [0.1, 0.2])
    assert found.lookup(np.stack((QUERY, B1 + 9))) == ([0.2, 0.1], [True, False])


def test_a_table_that_may_remember_nothing_stays_empty():
    found = table(capacity=0)
    for _ in range(2):
        found.learn(QUERY[None], [0.5])
        assert found.lookup(QUERY[None]) == ([], [])


def test_ties_go_to_the_oldest_member():
    found = table()
    found.learn(np.stack((QUERY, QUERY)), [0.1, 0.2])
    assert known(found, QUERY[None]) == [0.1]


def test_the_least_recently_hit_entry_is_evicted_first():
    found = table(0.1, unit=True, width=16, capacity=4)
    features = heads(5, num_heads=5)
    found.learn(features[:4], [0.0, 1, 2, 3])
    assert known(found, features[[1, 2, 3]]) == [1, 2, 3]
    found.learn(features[4:], [4.0])
    assert len(found) == len(found.centroids) == 4
    assert known(found, features) == [None, 1, 2, 3, 4]


def test_a_table_that_shrinks_keeps_the_entries_that_were_hit_last():
    found = table(0.1, unit=True, width=16)
    features = heads(5, num_heads=5)
    found.learn(features, [0.0, 1, 2, 3, 4])
    known(found, features[[1, 4]])
    found.shrink(2)
    assert known(found, features) == [None, 1, None, None, 4]
    found.learn(features[:1], [7.0])
    assert len(found) == 2


def naive_clusters(distances, cut):
    clusters = [[i] for i in range(len(distances))]
    while len(clusters) > 1:
        pairs = [
            (np.mean([distances[i][j] for i in a for j in b]), x, y)
            for x, a in enumerate(clusters)
            for y, b in enumerate(clusters)
            if x < y
        ]
        height, x, y = min(pairs)
        if height > cut:
            break
        clusters[x] += clusters.pop(y)
    return {frozenset(cluster) for cluster in clusters}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 12), cut=st.floats(0.1, 3))
def test_average_link_clusters_are_those_of_the_naive_algorithm(seed, count, cut):
    points = np.random.default_rng(seed).normal(size=(count, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    labels = average_link(distances, cut)
    found = {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}
    assert found == naive_clusters(distances.tolist(), cut)


def test_reclustering_joins_close_heads_and_keeps_what_is_known():
    found = table(0.3, unit=True, width=16)
    base = heads(7, num_heads=3)
    features = np.concatenate([base + 0.02 * heads(20 + i, num_heads=3) for i in range(4)])
    raw = [float(i % 3) for i in range(12)]
    found.learn(features, raw)
    assert found.num_added == 12
    found.recluster()
    assert found.num_added == 0
    assert len(found.centroids) == 3
    assert known(found, features) == raw


def test_a_thousand_entries_recluster_in_idle_time():
    found = table(0.6, unit=True, width=32)
    for seed in range(4):
        found.learn(heads(seed, 256, 32, 16), [0.0] * 256)
    assert len(found) == 1024
    found.recluster()
    assert len(np.unique(found.cluster)) == len(found.centroids)
