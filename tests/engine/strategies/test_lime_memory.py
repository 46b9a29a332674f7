"""LIME with growing KV caches: online plans, rows stored on other devices, and running out of memory."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_lime_run import GPT, case, marks, spans, tight

from engine.domain.errors import OutOfMemory
from engine.domain.scenario import Scenario, SetRate
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.runs.predict import predict
from engine.strategies.lime.blocks import OnlinePlan, online_plans, streamed_online
from engine.strategies.lime.cost import HopTime, StepTimes, StreamedBlock, longest_idle_s
from engine.strategies.lime.transfer import num_rows, pairs_of, round_trip, rows_to_park
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import block_ops, demand_of, working_bytes
from engine.strategies.shared.ends import layer_slices
from tests.support.small_cases import GPT2, plan_of, play, sends, spec_of, star

MB = 1e6
ROOM = OnlinePlan(10**6, 1, 1)


def test_the_thresholds_of_the_worked_example():
    # two segments of 100 MB layers, 20 MB free, 0.2 MB per token, one resident layer per stage
    plans = online_plans(20 * MB, 0.2 * MB, ROOM, (100 * MB / 3, 200 * MB / 3), 1, False)
    assert plans == ((100, 0, 0), (266, 1, 0), (433, 0, 1), (600, 1, 1))


def test_whole_layers_only_is_the_coarser_ablation():
    plans = online_plans(20 * MB, 0.2 * MB, ROOM, (100 * MB / 3, 200 * MB / 3), 1, True)
    assert plans == ((100, 0, 0), (600, 1, 1))


def test_a_longer_look_ahead_leaves_out_plans_that_end_too_soon():
    plans = online_plans(20 * MB, 0.2 * MB, ROOM, (100 * MB / 3, 200 * MB / 3), 200, False)
    assert plans == ((100, 0, 0), (433, 0, 1))


def test_one_segment_has_nothing_to_share_so_nothing_to_free():
    assert online_plans(20 * MB, 0.2 * MB, ROOM, (0.0, 0.0), 1, False) == ((100, 0, 0),)


@given(
    free=st.floats(0, 1e8),
    token=st.floats(1e3, 1e6),
    attention=st.floats(1e5, 1e8),
    ffn=st.floats(1e5, 1e8),
    most=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    lookahead=st.integers(1, 50),
)
def test_thresholds_increase_and_each_plan_frees_least_of_those_that_last(
    free, token, attention, ffn, most, lookahead
):
    room = OnlinePlan(10**6, *most)
    plans = online_plans(free, token, room, (attention, ffn), lookahead, False)
    every = [
        (a * attention + b * ffn, min(10**6, int((free + a * attention + b * ffn) // token)))
        for a in range(most[0] + 1)
        for b in range(most[1] + 1)
    ]
    for before, after in pairwise(plans):
        assert after.max_tokens >= before.max_tokens + lookahead
        freed = after.attention * attention + after.ffn * ffn
        assert freed <= min(size for size, lasts in every if lasts >= before.max_tokens + lookahead) + 1e-6
        assert after.max_tokens * token <= free + freed + 1e-6
    assert not any(lasts >= plans[-1].max_tokens + lookahead for _, lasts in every)


def test_blocks_that_are_streamed_in_addition_are_those_nearest_the_front():
    offline = (StreamedBlock(0, "attention"), StreamedBlock(0, "ffn"), StreamedBlock(1, "attention"))
    assert streamed_online(offline, OnlinePlan(1, 1, 2)) == (
        *offline,
        StreamedBlock(1, "ffn"),
        StreamedBlock(2, "attention"),
        StreamedBlock(2, "ffn"),
    )


def test_the_first_to_be_full_gives_to_the_last_if_that_has_half_as_much_again():
    assert pairs_of([100, 400, 200, 290]) == ((0, 1),)
    assert pairs_of([100, 400, 200, 300]) == ((0, 1), (2, 3))
    assert pairs_of([5]) == pairs_of([]) == ()


def test_the_worked_example_of_the_transfer():
    """6 ms at 200 Mbit/s are 150 kB one way, 1 token, and 75 kB there and back: none. 12 ms carry 1."""
    both_ways = 2 / 25e6
    assert num_rows(6e-3, 1 / 25e6, 81920) == 1
    assert num_rows(6e-3, both_ways, 81920) == 0
    assert num_rows(12e-3, both_ways, 81920) == 1
    assert num_rows(-1.0, both_ways, 81920) == 0
    assert num_rows(12e-3, both_ways, 81920, fixed_s=6e-3) == 0


@pytest.mark.parametrize(("staging", "copies_s"), [(None, 0.0), (1e7, 4e-7)])
def test_a_parked_byte_takes_the_time_of_both_ways_and_of_its_copies_on_both_devices(staging, copies_s):
    cluster = star([1e9] * 2, staging_byte_per_s=staging, message_overhead_s=1e-3)
    slower_back = cluster.links[0].model_copy(update={"reverse_bit_per_s": 4e7})
    cluster = cluster.model_copy(update={"links": (slower_back, cluster.links[1])})
    byte_s, fixed_s = round_trip(cluster, 0, 1, 1)
    assert byte_s == pytest.approx(1 / 12.5e6 + 1 / 5e6 + copies_s)
    assert fixed_s >= 4e-3, "rows, their request and two acknowledgements"


@pytest.mark.parametrize("disk_byte_per_s", [5e4, 2e5, 1e6])
@pytest.mark.parametrize("bit_per_s", [1e6, 1e7, 1e8])
@pytest.mark.parametrize(("burst", "new_tokens"), [(1, 40), (2, 6)])
def test_parking_rows_makes_no_run_slower_and_most_faster(burst, new_tokens, bit_per_s, disk_byte_per_s):
    """Rows travel while the device waits for its disk. A hidden state may wait for one message of rows, after
    which it waits less for the disk: no token is later by more than that, and the last one is not.
    """

    def emitted_s(**more):
        more |= {"requests": burst, "pattern": "bursty", "new_tokens": new_tokens, "fluctuation_rows": 1}
        spec = growing(disk_byte_per_s=disk_byte_per_s, **more)
        links = tuple(link.model_copy(update={"bit_per_s": bit_per_s}) for link in spec.cluster.links)
        spec = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"links": links})})
        trace = play(spec)
        messages = [span.payload_bytes for span in sends(trace) if span.name.startswith("kv_back.")]
        message_s = 8 * max(messages, default=0) / bit_per_s
        return sorted(mark.time_s for mark in marks(trace, "token_emitted")), message_s

    (with_s, message_s), (without_s, _) = emitted_s(), emitted_s(kv_transfer=False)
    assert all(ours <= theirs + message_s for ours, theirs in zip(with_s, without_s, strict=True))
    assert with_s[-1] <= without_s[-1] * (1 + 1e-12)
    if message_s and bit_per_s > 1e6:  # the ablation of Table V, whose published ratio is 0.86
        assert with_s[-1] < 0.9 * without_s[-1]


def test_the_longest_idle_time_of_a_device_s_slots_is_that_between_its_largest_stages():
    """Two stages of (1, 2) and (2, 1) layers of 10 ms, hops of 2 and 3 ms, embedding and head 1 and 4 ms.

    The first device's slots, from the start of a stage to that of its next one: 10 + 20 + 2 + 3 ms, then
    20 + 10 + 2 + 3 + 1 + 4 ms. The second's: 20 + 20 + 2 + 3 ms, then 10 + 10 + 2 + 3 + 1 + 4 ms.
    """
    hops = (HopTime(2e-3), HopTime(3e-3))
    step = StepTimes((10e-3, 10e-3), (3e-3, 3e-3), hops, leave=hops[-1], begin_s=1e-3, end_s=4e-3)
    stages = ((1, 2), (2, 1))
    assert longest_idle_s(step, stages, 0, 0.0) == pytest.approx(40e-3)
    assert longest_idle_s(step, stages, 1, 0.0) == pytest.approx(45e-3)
    assert longest_idle_s(step, stages, 1, 7e-3) == pytest.approx(38e-3)


def test_fewer_rows_at_once_more_only_before_the_next_plan_and_small_changes_never():
    assert rows_to_park(7, 0, tokens=99, max_tokens=100, step_tokens=1, fluctuation=8) == 0
    assert rows_to_park(9, 0, tokens=98, max_tokens=100, step_tokens=1, fluctuation=8) == 0
    assert rows_to_park(9, 0, tokens=99, max_tokens=100, step_tokens=1, fluctuation=8) == 9
    assert rows_to_park(2, 20, tokens=50, max_tokens=100, step_tokens=1, fluctuation=8) == 2
    assert rows_to_park(14, 20, tokens=50, max_tokens=100, step_tokens=1, fluctuation=8) == 20


@pytest.mark.parametrize(
    ("tokens", "step_tokens", "parked"), [(88, 1, 10), (89, 1, 20), (77, 2, 10), (78, 2, 20)]
)
def test_rows_that_are_parked_already_bring_the_next_threshold_nearer(tokens, step_tokens, parked):
    # Algorithm 2, line 18: as long as tokens + 10 parked rows of one or two sequences are below 100 - a step
    assert rows_to_park(20, 10, tokens, max_tokens=100, step_tokens=step_tokens, fluctuation=8) == parked


LONG = GPT.model_copy(update={"max_positions": 128})


def growing(layers=3.5, num_segments=4, disk_byte_per_s=2e5, **more):
    """Devices whose memory is full of KV cache before the answer is complete."""
    cluster = tight(GPT, (2e9, 1e9), layers, disk_byte_per_s=disk_byte_per_s)
    return case(LONG, cluster, 12, **{"new_tokens": 40, "num_segments": num_segments, **more})


def test_caches_that_outgrow_their_memory_make_room_by_streaming_more():
    spec = growing(kv_transfer=False, mode="exact")
    plan, trace = plan_of(spec), play(spec)
    applied = marks(trace, "threshold")
    assert applied
    for mark in applied:
        plans = plan.layout.online[spec.cluster.rank(mark.device)]
        before = [one for one in plans if one.max_tokens < mark.facts["max_tokens"]]
        assert before[-1].max_tokens < mark.facts["tokens"] <= mark.facts["max_tokens"]
        late = [span for span in spans(trace, "load", mark.device) if span.start_s > mark.time_s]
        assert late
    first = min(mark.time_s for mark in applied)
    assert {span.name for span in spans(trace, "load") if span.start_s < first} == {"attention"}
    assert {span.name for span in spans(trace, "load") if span.start_s > first} == {"attention", "ffn"}


def test_after_its_requests_a_device_streams_what_it_did_at_first():
    spec = growing(kv_transfer=False, requests=2)
    trace = play(spec)
    half = len(marks(trace, "threshold")) // 2
    times = [(mark.device, mark.facts["tokens"]) for mark in marks(trace, "threshold")]
    assert half and sorted(times[:half]) == sorted(times[half:])


def test_without_a_plan_left_the_run_ends_as_out_of_memory():
    spec = growing(online_planner="off", kv_transfer=False, mode="exact")
    with pytest.raises(OutOfMemory) as caught:
        play(spec)
    layout, sentence = plan_of(spec).layout, str(caught.value)
    rank = spec.cluster.rank(caught.value.device)
    parts = [block.part for block in layout.streamed[rank]]
    tokens = layout.online[rank][0].max_tokens + 1
    assert f"KV caches of {tokens} tokens" in sentence
    streamed = f"{parts.count('attention')} attention and {parts.count('ffn')} feed-forward blocks"
    assert f"streaming {streamed} of each of its {layout.num_segments} stages" in sentence
    assert "assumed_tokens=0" in sentence and "online_planner=blocks" in sentence
    token_bytes = layout.num_layers(rank) * kv_bytes_per_row(spec.model, spec.model.num_kv_heads)
    assert caught.value.need_bytes - caught.value.have_bytes == token_bytes


def test_a_plan_that_streams_nothing_and_ends_too_early_says_that_nothing_was_streamed():
    spec = growing(layers=9, num_segments=1, new_tokens=40)
    plan = plan_of(spec)
    online = {rank: (OnlinePlan(20, 0, 0),) for rank in plan.layout.ranks}
    short = plan.model_copy(update={"layout": plan.layout.model_copy(update={"online": online})})
    with pytest.raises(OutOfMemory, match="streaming nothing, since one segment has no other"):
        play(spec, short)


def parked(trace):
    return [(mark.facts["rows"], mark.time_s) for mark in marks(trace, "kv_transfer")]


def test_rows_are_parked_before_the_next_plan_and_come_back_for_every_turn():
    spec = growing(fluctuation_rows=1)
    plan, trace = plan_of(spec), play(spec)
    (transfer,) = plan.layout.transfers
    assert parked(trace)
    source, target = (spec.cluster.devices[rank].name for rank in (transfer.source, transfer.target))
    put = [span for span in sends(trace) if span.name.startswith("kv.") and span.payload_bytes]
    back = [span for span in sends(trace) if span.name.startswith("kv_back.") and span.payload_bytes]
    assert {span.device for span in put} == {source} and {span.device for span in back} == {target}
    taken, stored, dropped = (
        [span for span in spans(trace, "compute") if span.name == op.name]
        for op in (TakeRows, PutRows, DropRows)
    )
    assert len(taken) == len(stored) and len(dropped) > 0
    first = min(mark.time_s for mark in marks(trace, "threshold")) if marks(trace, "threshold") else 1e9
    assert min(time for _, time in parked(trace)) < first


def test_parked_rows_are_always_on_one_of_both_devices():
    spec = growing(fluctuation_rows=1)
    trace = play(spec)
    (transfer,) = plan_of(spec).layout.transfers
    source, target = (spec.cluster.devices[rank].name for rank in (transfer.source, transfer.target))
    dropped = spans(trace, "compute")
    for loser, winner in ((source, target), (target, source)):
        ends = {
            name: sorted(
                (s.layer, s.start_s if name == DropRows.name else s.end_s)
                for s in dropped
                if s.name == name and s.device == device
            )
            for name, device in ((DropRows.name, loser), (PutRows.name, winner))
        }
        gone, there = ends[DropRows.name], ends[PutRows.name]
        assert gone
        for layer in {layer for layer, _ in gone}:
            kept_s = [time for one, time in there if one == layer]
            lost_s = [time for one, time in gone if one == layer]
            assert all(kept <= lost for kept, lost in zip(kept_s, lost_s, strict=False))
            assert len(kept_s) >= len(lost_s)


def test_parked_rows_delay_the_next_plan():
    def first_threshold(**more):
        times = [
            mark.facts["tokens"]
            for mark in marks(play(growing(fluctuation_rows=1, **more)), "threshold")
            if mark.device == device
        ]
        return min(times, default=10**6)

    (transfer,) = plan_of(growing()).layout.transfers
    device = f"d{transfer.source}"
    assert first_threshold() > first_threshold(kv_transfer=False)


@pytest.mark.parametrize("factor", [0.001, 0.1])
def test_a_slower_link_never_parks_more_rows(factor):
    def rows(spec):
        return {mark.facts["decision"]: mark.facts["answer"] for mark in marks(play(spec), "decided")}

    spec = growing(fluctuation_rows=1)
    middle = parked(play(spec))[3][1] * 1.001
    changes = tuple(
        SetRate(at_s=middle, link=link.name, bit_per_s=factor * link.bit_per_s) for link in spec.cluster.links
    )
    before, after = rows(spec), rows(spec.model_copy(update={"scenario": Scenario(changes=changes)}))
    assert before.keys() == after.keys()
    assert all(after[name] <= before[name] for name in before)
    assert (after != before) == (factor == 0.001)  # a tenth of the rate still carries them


def test_partners_may_send_both_ways():
    spec = growing()
    plan = plan_of(spec)
    (transfer,) = plan.layout.transfers
    pair = transfer.source, transfer.target
    assert strategy("lime").partners(spec.cluster, plan) == {pair, pair[::-1]}


def test_where_no_plan_for_an_assumed_length_lasts_the_true_length_is_planned_for():
    model = GPT2.model_copy(update={"num_layers": 6})
    cluster = star([1e9] * 2, memory_bytes=160e3)
    spec = spec_of("lime", model, cluster, rows=20, new_tokens=40, assumed_tokens=4)
    assert predict(spec).outcome.kind == "finished"


def test_a_message_of_parked_rows_of_a_batch_is_no_larger_than_a_layer_needs_for_it():
    """Beside the batch's own hidden states, so that no device needs more memory for the message."""
    spec = growing(3.7, requests=2, pattern="bursty", planner="best", new_tokens=10)
    layout = plan_of(spec).layout
    (transfer,), batch = layout.transfers, layout.micro_batch
    demand = demand_of(spec.model, spec.workload, False)._replace(batch=batch)
    row_bytes = kv_bytes_per_row(spec.model, spec.model.num_kv_heads)
    room = working_bytes(spec.model, block_ops(spec.model, demand))
    assert batch == 2 and 0 < 2 * batch * transfer.max_rows * row_bytes <= room


def test_what_is_streamed_in_addition_makes_room_for_that_many_tokens():
    """A block that is streamed leaves the memory of every segment but the one that holds it."""
    spec = growing(kv_transfer=False, mode="exact")
    layout = plan_of(spec).layout
    frees = [(layout.num_segments - 1) * weight_bytes(spec.model, piece) for piece in layer_slices(0)]
    assert any(len(plans) > 1 for plans in layout.online.values())
    for rank, (first, *later) in layout.online.items():
        token_bytes = layout.num_layers(rank) * kv_bytes_per_row(spec.model, spec.model.num_kv_heads)
        for plan in later:
            freed = plan[1] * frees[0] + plan[2] * frees[1]
            room = first.max_tokens + freed / token_bytes
            assert plan.max_tokens == pytest.approx(min(room, spec.model.max_positions), abs=1)
