"""Petals: the contract, who joins where, and the chain, by hand."""

from petals_placement import Petals, fastest_chain, spans_of

from edgeloom.cluster import ClusterSpec, DeviceSpec, LinkSpec
from edgeloom.testing import check_strategy


def test_it_keeps_the_contract():
    check_strategy(Petals)


def test_a_server_joins_where_the_model_is_served_worst():
    # 0 has blocks 0 to 3; 1 finds 4 and 5 empty; 2 finds 4 and 5 served at 1/2, the others at 1/4
    spans = spans_of({0: 4, 1: 2, 2: 3}, {0: 1.0, 1: 1.0, 2: 1.0}, 6)
    assert spans == {0: range(0, 4), 1: range(4, 6), 2: range(0, 3)}


def test_a_server_that_has_no_room_serves_nothing():
    assert spans_of({0: 0, 1: 9}, {0: 1.0, 1: 1.0}, 4) == {1: range(0, 4)}


def test_the_chain_leaves_out_a_server_that_is_far_away():
    import edgeloom
    from edgeloom.method.demand import demand_of

    devices = [
        DeviceSpec(name=name, flop_per_s=2e10, memory_bytes=4e9, memory_byte_per_s=4e9)
        for name in ("client", "near", "far")
    ]
    links = [LinkSpec(a="client", b="near", bit_per_s=1e9), LinkSpec(a="client", b="far", bit_per_s=1e3)]
    cluster = ClusterSpec(name="star", source="client", devices=devices, links=links)
    spec = edgeloom.spec(cluster, "gpt2", Petals(), weights="random", prompt_tokens=8, new_tokens=4)
    demand = demand_of(spec.model, spec.workload, batches_bursts=False)
    spans = {1: range(0, 12), 2: range(0, 12)}
    chain = fastest_chain(cluster, spec.model, demand, spans, {1: 2.0, 2: 1.0})
    assert chain == ((1, 12),)
