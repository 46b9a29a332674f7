"""Galaxy: shares by capacity and memory, rows between the parts, transfers overlapped with tiles."""

import re
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.strategies.galaxy.plan import (
    EXACT_MEMBERS,
    NoRoom,
    balance,
    check_shares,
    exact_shares,
    need_bytes_of,
    task_of,
)
from engine.strategies.galaxy.time import gather_s, scatter_s
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.shares import largest_remainder
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, sends, spec_of, star

HEAD_MB, GRANULE_MB = 9.45, 4.725
"""GPT-2 with 12 layers of 9.45 and 18.9 MB: one of 12 heads, one of 48 granules of columns, in all layers."""


WIDE = GPT2.model_copy(
    update={
        "name": "wide",
        "num_layers": 6,
        "hidden_size": 512,
        "num_heads": 16,
        "num_kv_heads": 16,
        "head_dim": 32,
        "intermediate_size": 2048,
        "max_positions": 512,
    }
)


def need_mb(i, heads, granules):
    return HEAD_MB * heads + GRANULE_MB * granules


def test_shares_follow_capacity_while_memory_allows():
    heads, granules = balance(12, 48, (1, 0.5, 0.25), need_mb, (200, 100, 60))
    assert (heads, granules) == ((7, 3, 2), (27, 14, 7))
    needs = [need_mb(i, h, g) for i, (h, g) in enumerate(zip(heads, granules, strict=True))]
    assert needs == pytest.approx([193.7, 94.5, 52.0], abs=0.05)


def test_what_does_not_fit_moves_to_those_with_room():
    heads, granules = balance(12, 48, (1, 0.5, 0.25), need_mb, (150, 120, 120))
    assert (heads, granules) == ((7, 3, 2), (17, 19, 12))
    needs = [need_mb(i, h, g) for i, (h, g) in enumerate(zip(heads, granules, strict=True))]
    assert needs == pytest.approx([146.5, 118.1, 75.6], abs=0.05)


def test_less_memory_than_the_model_needs_is_no_room():
    with pytest.raises(NoRoom) as caught:  # 310 MB for 340
        balance(12, 48, (1, 0.5, 0.25), need_mb, (150, 100, 60))
    assert [i for i, _ in caught.value.needs] == [0]


def test_members_that_are_exactly_full_lack_nothing():
    """Each has 4 heads and 16 granules, 113.4 MB: the first two are full, the third has 3.4 MB too little."""
    with pytest.raises(NoRoom) as caught:
        balance(12, 48, (1, 1, 1), need_mb, (need_mb(0, 4, 16),) * 2 + (110,))
    assert caught.value.needs == ((2, pytest.approx(113.4)),)


@pytest.mark.parametrize("members", [EXACT_MEMBERS, EXACT_MEMBERS + 1])
def test_however_many_devices_every_head_and_column_has_a_place_and_fits(members):
    """Of 16 heads and 64 granules the first device cannot hold more than one head, whatever it asks for."""
    cluster = star([1e10] * members)
    demand = demand_of(WIDE, spec_of("galaxy", WIDE, cluster).workload, True)
    task = task_of("galaxy", cluster, WIDE, demand, True)
    sizes = largest_remainder(demand.rows, [1.0] * members)
    need_bytes = need_bytes_of(task, sizes)
    least = need_bytes(0, 1, 4)
    memories = [least, *[4e8] * (members - 1)]
    devices = [
        device.model_copy(update={"memory_bytes": memory})
        for device, memory in zip(cluster.devices, memories, strict=True)
    ]
    task = task._replace(cluster=cluster.model_copy(update={"devices": tuple(devices)}))
    heads, granules = exact_shares(task, sizes, need_bytes)
    assert (sum(heads), sum(granules)) == (WIDE.num_heads, task.granules)
    assert need_bytes(0, heads[0], granules[0]) <= least


def test_exact_shares_are_never_slower_than_those_of_the_paper_s_rule_and_mostly_faster():
    """Also where the rule finds room for all."""
    rng, faster = Random(2), 0
    for _ in range(4):
        cluster = star([10 ** rng.uniform(9, 10) for _ in range(3)])
        exact_s, balance_s = (
            plan_of(
                spec_of("galaxy", GPT2, cluster, rows=12, division=division)
            ).layout.predicted_layer_s.tiles
            for division in ("exact", "balance")
        )
        assert exact_s <= balance_s
        faster += exact_s < balance_s
    assert faster > 2


def test_rows_by_hand_are_those_that_were_given_and_some_device_must_have_some():
    def by_hand(*rows):
        share = {"heads": 2, "columns": 32}
        devices = [{"device": f"d{rank}", "rows": count, **share} for rank, count in enumerate(rows)]
        return plan_of(spec_of("galaxy", GPT2, star([1e10] * 2), rows=12, plan={"devices": devices}))

    assert by_hand(1, 2).layout.rows == (0, 4, 12)
    with pytest.raises(PlanError, match="gives no device any rows: give one device some"):
        by_hand(0, 0)


@pytest.mark.parametrize("overlap", [True, False])
def test_memory_for_the_peak_of_an_encoder_s_run_is_enough_for_its_plan(overlap):
    """Its prompt passes once, in tiles alone if they overlap: nothing computes all rows at a time."""
    roomy = spec_of("galaxy", BERT, star([1e10] * 3), rows=24, overlap=overlap)
    plan = plan_of(roomy)
    marks = [item for item in play(roomy, plan) if getattr(item, "name", "") == "memory"]
    peaks = {mark.device: float(mark.facts["peak_bytes"]) for mark in marks}
    devices = [
        device.model_copy(update={"memory_bytes": peaks[device.name]}) for device in roomy.cluster.devices
    ]
    cluster = roomy.cluster.model_copy(update={"devices": tuple(devices)})
    check_shares(cluster, BERT, demand_of(BERT, roomy.workload, True), plan)


def test_one_device_without_enough_memory_is_refused_by_name():
    cluster = star([1e10])
    tiny = cluster.devices[0].model_copy(update={"memory_bytes": 20_000})
    spec = spec_of("galaxy", GPT2, cluster.model_copy(update={"devices": (tiny,)}))
    with pytest.raises(PlanError, match=r"d0 needs [\d.]+ [kM]B and has [\d.]+ k?B"):
        plan_of(spec)


@given(st.integers(0, 64), st.integers(1, 9))
def test_equal_capacities_differ_by_one_unit_at_most(units, members):
    shares = balance(units, 4 * units, [2.5] * members, need_mb, [1e9] * members)
    assert all(max(each) - min(each) <= 1 for each in shares)


@settings(max_examples=200)
@given(
    st.integers(1, 12),
    st.integers(1, 48),
    st.lists(st.tuples(st.floats(0.1, 10), st.integers(0, 60)), min_size=1, max_size=5),
)
def test_all_units_find_a_place_or_too_little_is_left_for_any(heads, granules, members):
    """A head weighs 3, a granule 1: if there is no room, less than a unit's weight is left wherever it is."""
    capacities, memories = zip(*members, strict=True)

    def need(i, heads, granules):
        return 3 * heads + granules

    try:
        shares = balance(heads, granules, capacities, need, memories)
    except NoRoom:
        assert sum(memory // 1 for memory in memories) < 3 * heads + granules + 2 * len(members)
        return
    assert [sum(each) for each in shares] == [heads, granules]
    assert all(need(i, *each) <= memories[i] for i, each in enumerate(zip(*shares, strict=True)))


@pytest.mark.parametrize(("transfer", "serial", "overlapped"), [(3, 25, 16), (6, 34, 22)])
def test_four_tiles_of_4_ms_hide_what_they_can(transfer, serial, overlapped):
    for join in (gather_s, scatter_s):
        assert join([4] * 4, [transfer] * 3, False) == serial
        assert join([4] * 4, [transfer] * 3, True) == overlapped


times = st.floats(0, 100)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=8))
def test_overlap_is_never_slower_than_one_after_the_other_nor_faster_than_either(tiles):
    gemm, transfer = [g for g, _ in tiles], [x for _, x in tiles][1:]
    for join in (gather_s, scatter_s):
        together = join(gemm, transfer, True)
        assert together <= join(gemm, transfer, False) + 1e-9
        assert together >= max(sum(gemm), sum(transfer)) - 1e-9


def even(rates, bit_per_s):
    """No fixed costs: a transfer is its bytes, a product its FLOPs."""
    cluster = star(rates, compute_model="flops", message_overhead_s=0.0)
    links = [link.model_copy(update={"bit_per_s": bit_per_s}) for link in cluster.links]
    return cluster.model_copy(update={"links": tuple(links)})


def layer_s(trace, device="d0", name="attend", layers=(2, 4)):
    starts = {
        s.layer: s.start_s
        for s in trace
        if getattr(s, "kind", "") == "compute" and s.name == name and s.device == device
    }
    return (starts[layers[1]] - starts[layers[0]]) / (layers[1] - layers[0])


@pytest.mark.parametrize("bit_per_s", [2e8, 1e9, 1e10], ids=["transfers", "balanced", "products"])
@pytest.mark.parametrize(("way", "name"), [("tiles", "attend"), ("whole", "attention")])
def test_the_simulated_world_takes_what_the_formulas_say(bit_per_s, way, name):
    overlap = way == "tiles"
    spec = spec_of("galaxy", WIDE, even([1e11] * 4, bit_per_s), rows=128, new_tokens=1, overlap=overlap)
    plan = plan_of(spec)
    trace = play(spec, plan)
    assert layer_s(trace, name=name) == pytest.approx(getattr(plan.layout.predicted_layer_s, way), rel=0.03)


def test_tiles_save_most_where_products_and_transfers_take_equally_long():
    saved = {}
    for bit_per_s in (1e8, 4e9, 1e12):
        ends = {}
        for overlap in (True, False):
            spec = spec_of(
                "galaxy", WIDE, even([1e11] * 4, bit_per_s), rows=128, new_tokens=1, overlap=overlap
            )
            ends[overlap] = max(span.end_s for span in sends(play(spec)))
        saved[bit_per_s] = 1 - ends[True] / ends[False]
    assert saved[4e9] > 0.25
    assert saved[4e9] > saved[1e8] > 0
    assert saved[4e9] > saved[1e12] >= -1e-9


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_every_device_sends_as_much_as_in_two_ring_all_reduces(devices, model, overlap):
    rows = 12
    trace = play(spec_of("galaxy", model, star([1e10] * devices), rows=rows, overlap=overlap))
    counted = defaultdict(int)
    for span in sends(trace):
        counted[span.device, span.layer, span.token] += span.payload_bytes // 4
    once = (devices - 1) * rows * model.hidden_size // devices
    for device in range(devices):
        assert counted[f"d{device}", 0, 0] == 3 * once  # the prompt's rows are on all devices already
        for layer in range(1, model.num_layers):
            assert counted[f"d{device}", layer, 0] == 4 * once


def test_a_single_row_goes_to_the_first_device_and_from_there_to_all():
    devices, row = 4, GPT2.hidden_size * 4
    trace = play(spec_of("galaxy", GPT2, star([1e10] * devices, source=1)))
    counted = defaultdict(int)
    for span in sends(trace):
        if span.token == 1 and span.layer == 1:
            counted[span.device, span.peer] += span.payload_bytes
    others = ("d0", "d2", "d3")
    assert counted == {pair: 2 * row for other in others for pair in (("d1", other), (other, "d1"))}


def test_a_transfer_runs_beside_a_tile():
    trace = play(spec_of("galaxy", WIDE, even([1e11] * 3, 1e9), rows=96, new_tokens=1))
    products = [s for s in trace if getattr(s, "kind", "") == "compute" and s.name in ("expand", "contract")]
    assert any(
        a.device == b.device and a.start_s < b.end_s and b.start_s < a.end_s
        for a in sends(trace)
        for b in products
    )


@pytest.mark.parametrize(("model", "overlap"), [(GPT2, True), (LLAMA, False)], ids=["gpt2", "llama"])
def test_a_device_with_little_memory_gets_fewer_columns_and_does_not_run_out(model, overlap):
    model = model.model_copy(update={"num_layers": 6})
    wide = spec_of("galaxy", model, star([1e10] * 3), overlap=overlap)
    columns = plan_of(wide).layout.columns
    for memory_bytes in range(20000, 90000, 2500):
        devices = [
            d.model_copy(update={"memory_bytes": float(memory_bytes)}) if d.name == "d1" else d
            for d in wide.cluster.devices
        ]
        cluster = wide.cluster.model_copy(update={"devices": tuple(devices)})
        spec = wide.model_copy(update={"cluster": cluster})
        try:
            plan = plan_of(spec)
        except PlanError as error:
            has = f"has {memory_bytes / 1e3:g} kB, and no other device has room"
            assert re.match(rf"galaxy: d1 needs [\d.]+ kB and {has}", str(error)), str(error)
            continue
        play(spec, plan)
        shrunk = plan.layout.columns
        assert shrunk[2] - shrunk[1] <= columns[2] - columns[1]


def test_rows_are_equal_or_follow_speed():
    cluster = star([3e10, 1e10, 1e10], compute_model="flops")
    equal = plan_of(spec_of("galaxy", GPT2, cluster, rows=10))
    by_speed = plan_of(spec_of("galaxy", GPT2, cluster, rows=10, row_shares="proportional"))
    assert equal.layout.rows == (0, 4, 7, 10)
    assert by_speed.layout.rows == (0, 6, 8, 10)
