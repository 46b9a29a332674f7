"""AdaptLink: properties of its plans, results on real tensors, bytes sent, and failures of devices."""

from collections import Counter
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PeerFailed, PlanError, SpecError
from engine.domain.events import to_json
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.trace import Mark, Span
from engine.ops.sizes import kv_bytes_per_row
from engine.runs.predict import predict
from engine.strategies.adaptlink.roles import ColumnShard, place_backups
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import weights_bytes
from tests.support.adaptlink_cases import RATES, room_of, run_dying, tight, with_memory
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, prompts, sends, spec_of, star

GROUPED = LLAMA
OVERS = (0.3, 0.7, 0.98)


def columns_of(plan):
    return plan.layout.shards


@cache
def expected_of(model, rows=11, requests=1, pattern="sporadic"):
    spec = spec_of("single", model, star([1e10]), rows=rows, requests=requests, pattern=pattern)
    return outputs_of(run_in_memory(spec, plan_of(spec), prompts(spec))[0], model)


def outputs_of(source, model):
    return {k: torch.stack(v) for k, v in source.logits.items()} if model.causal else source.states


def assert_equal_numbers(got, expected, model):
    assert got.keys() == expected.keys()
    for request, theirs in expected.items():
        torch.testing.assert_close(got[request], theirs, rtol=1e-4, atol=1e-5)
        if model.causal:
            assert torch.equal(got[request].argmax(-1), theirs.argmax(-1))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("over", OVERS)
@pytest.mark.parametrize("terminal", [False, True])
def test_split_layers_give_one_devices_numbers(model, over, terminal):
    spec = tight(model, over, terminal=terminal, requests=2, pattern="bursty")
    plan = plan_of(spec)
    assert plan.layout.split_layers
    source, _ = run_in_memory(spec, plan, prompts(spec))
    expected = expected_of(model, requests=2, pattern="bursty")
    assert_equal_numbers(outputs_of(source, model), expected, model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("over", OVERS)
def test_summa_gives_the_numbers_of_columns_with_more_messages(model, over):
    """Also where the primary keeps no columns at all: then it owns no block of input or output either."""
    rates = (4e10, 1e10, 2.5e10) if over < 0.9 else (1e9, 1e10, 2.5e10)
    others = 0.5 if over < 0.9 else 0.8
    specs = [
        tight(model, over, rates=rates, partition=partition, others=others, primary="d0")
        for partition in ("columns", "summa")
    ]
    (columns, by_columns), (summa, by_summa) = (run_in_memory(s, plan_of(s), prompts(s)) for s in specs)
    assert plan_of(specs[0]).layout.shards == plan_of(specs[1]).layout.shards
    assert_equal_numbers(outputs_of(summa, model), outputs_of(columns, model), model)
    messages = [sum(map(len, world.sent.values())) for world in (by_columns, by_summa)]
    assert messages[0] < messages[1]
    assert plan_of(specs[1]).layout.backups == {}


@pytest.mark.parametrize("model", [GPT2, GROUPED, BERT], ids=lambda model: model.family)
def test_attention_that_has_to_move_keeps_its_numbers_and_takes_its_kv_cache_along(model):
    spec = tight(model, 1.1, rates=(4e10, 2.5e10, 1e10), others=3, primary="d0")
    plan = plan_of(spec)
    assert plan.layout.heads and plan.layout.split_layers == tuple(range(model.num_layers))
    assert columns_of(plan)[0].stop == 0
    source, world = run_in_memory(spec, plan, prompts(spec))
    assert_equal_numbers(outputs_of(source, model), expected_of(model), model)
    for layer, _, start, stop in plan.layout.heads:
        assert start % model.group_size == 0 and stop % model.group_size == 0
        assert layer >= min(layer for layer, *_ in plan.layout.heads)
    assert max(layer for layer, *_ in plan.layout.heads) == model.num_layers - 1
    if model.causal:
        play_peak = {
            item.device: item.facts["kv_bytes"]
            for item in play(spec)
            if isinstance(item, Mark) and item.name == "memory" and item.facts["kv_bytes"]
        }
        assert len(play_peak) > 1, "no KV cache moved"
    assert sum(len(sent) for sent in world.sent.values())


def test_a_model_that_fits_is_computed_by_the_primary_without_any_message():
    spec = spec_of("adaptlink", GPT2, star(RATES))
    plan = plan_of(spec)
    assert plan.layout.split_layers == () and plan.layout.backups == {}
    _, world = run_in_memory(spec, plan, prompts(spec))
    assert not any(world.sent.values())


@pytest.mark.parametrize("over", OVERS)
def test_every_secondary_receives_and_returns_one_hidden_state_per_split_layer(over):
    rows, new_tokens = 9, 3
    spec = tight(GPT2, over, rows=rows, new_tokens=new_tokens)
    plan = plan_of(spec)
    split = len(plan.layout.split_layers)
    trace = play(spec)
    bytes_of = Counter()
    for span in sends(trace):
        bytes_of[span.device, span.peer, span.token] += span.payload_bytes
    row_bytes = GPT2.hidden_size * GPT2.element_bytes
    for shard in columns_of(plan)[1:]:
        name = spec.cluster.devices[shard.device].name
        for token in range(new_tokens):
            each = split * row_bytes * (rows if token == 0 else 1)
            assert bytes_of["d0", name, token] == bytes_of[name, "d0", token] == each


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.floats(0.02, 1.2),
    st.floats(0.2, 2.5),
    st.lists(st.floats(1e9, 1e11), min_size=1, max_size=6),
    st.floats(0.3, 1.0),
    st.sampled_from([None, 0.0, 0.3, 0.8, 1.0]),
)
def test_plans_cover_every_column_once_split_a_suffix_and_stay_within_beta(
    model, over, others, rates, beta, share
):
    spec = tight(model, over, (2e11, *rates), others, beta=beta, primary_share=share)
    sizes = {d.name: d.memory_bytes / beta for d in spec.cluster.devices}
    spec = spec.model_copy(update={"cluster": with_memory(spec.cluster, **sizes)})
    try:
        plan = plan_of(spec)
    except PlanError as error:
        assert "needs" in str(error) and "has" in str(error) and str(error).endswith(".")
        return
    layout, columns = plan.layout, columns_of(plan)
    plan.validate_cover(model, 11, generates=model.causal)
    width = model.intermediate_size // layout.grid
    blocks = sorted(block for blocks in layout.shares.values() for block in blocks)
    assert blocks == list(range(layout.grid))
    assert all(shard.start % width == 0 for shard in columns)
    assert [shard.start for shard in columns[1:]] == [shard.stop for shard in columns[:-1]]
    split = layout.split_layers
    assert split == tuple(range(model.num_layers))[-len(split) or 99 :]
    for rank, device in enumerate(spec.cluster.devices):
        assert weights_bytes(plan, model, rank) <= beta * device.memory_bytes
    peaks = {
        item.device: item.facts["peak_bytes"]
        for item in play(spec, plan)
        if isinstance(item, Mark) and item.name == "memory"
    }
    for device in spec.cluster.devices:
        assert peaks[device.name] <= beta * device.memory_bytes * (1 + 1e-9)


def test_one_layer_fewer_would_not_fit():
    spec = tight(GPT2, 0.3)
    plan = plan_of(spec)
    primary = room_of(spec.cluster, GPT2, spec.workload).primary(0)
    kept = columns_of(plan)[0].stop / GPT2.intermediate_size
    count = len(plan.layout.split_layers)
    assert count == primary.num_split(kept)
    assert (1 - kept) * (count - 1) * primary.ffn_bytes < primary.over_bytes


def test_a_primary_that_keeps_no_share_splits_the_fewest_layers():
    counts = {
        share: len(plan_of(tight(GPT2, 0.3, primary_share=share)).layout.split_layers)
        for share in (0.0, 0.5, None)
    }
    assert counts[0.0] == 1 < counts[0.5] <= counts[None]


def test_by_equation_5_the_primary_is_the_fastest_of_the_devices_with_most_memory():
    cluster = with_memory(star([1e10, 4e10, 9e10]), d0=4e8, d1=4e8, d2=3e8)
    assert plan_of(spec_of("adaptlink", GPT2, cluster, comm_mode="eq5")).layout.primary == 1
    for mode in ("exact", "eq5", "none"):
        named = spec_of("adaptlink", GPT2, cluster, primary="d2", comm_mode=mode)
        assert plan_of(named).layout.primary == 2
    with pytest.raises(SpecError, match="is a terminal"):
        plan_of(spec_of("adaptlink", GPT2, star([1e10], terminal=True), primary="term"))


def test_as_few_secondaries_as_memory_allows_and_the_rest_are_backups():
    plan = plan_of(tight(GPT2, 0.3))
    assert [shard.device for shard in columns_of(plan)] == [0, 2]  # the fastest of the others
    assert plan.layout.backups == {2: ((1, *plan.layout.shards[1][1:]),)}
    assert plan.layout.coverage == 1.0
    assert plan_of(tight(GPT2, 0.3, backups="none")).layout.backups == {}
    two = plan_of(tight(GPT2, 0.7, others=0.4))
    assert len(columns_of(two)) > 2
    with pytest.raises(PlanError, match="needs"):
        plan_of(tight(GPT2, 0.7, others=0.4, max_secondaries=1))


def test_a_backup_has_its_copy_in_memory_from_the_start():
    plan = plan_of(tight(GPT2, 0.3))
    copies = plan.held_by(1)
    assert copies and set(copies) == set(plan.held_by(2))
    assert {holding.home for holding in plan.holdings if holding.device == 1} == {"backup"}
    assert weights_bytes(plan, GPT2, 1) == weights_bytes(plan, GPT2, 2) > 0
    assert not any(work.device == 1 for work in plan.work)


def test_a_shard_too_large_for_any_backup_is_spread_over_several():
    shards = [ColumnShard(0, 0, 8), ColumnShard(1, 8, 40), ColumnShard(2, 40, 64)]
    backups = place_backups(shards, {3: 20.0, 4: 26.0, 5: 60.0}, column_bytes=1.0, rest_bytes=2.0, width=8)
    assert backups == {1: (ColumnShard(5, 8, 40),), 2: (ColumnShard(4, 40, 64),)}
    backups = place_backups(shards, {3: 20.0, 4: 18.0}, column_bytes=1.0, rest_bytes=2.0, width=8)
    assert backups == {1: (ColumnShard(3, 8, 24), ColumnShard(4, 24, 40))}
    backups = place_backups(shards, {3: 12.0}, column_bytes=1.0, rest_bytes=2.0, width=8)
    assert backups == {1: (ColumnShard(3, 8, 16),)}


def test_a_bad_grid_is_refused():
    with pytest.raises(SpecError, match="grid: 5 does not divide 32 and 64"):
        plan_of(spec_of("adaptlink", GPT2, star([1e10]), grid=5))


def test_the_simulated_step_is_the_one_predicted_with_messages_of_full_size():
    """Without fixed costs, and with many rows beside the few bytes of headers."""
    spec = tight(BERT, 0.5, rates=(4e9, 2e9), rows=60)
    devices = [
        device.model_copy(update={"compute_model": "flops", "message_overhead_s": 0.0})
        for device in spec.cluster.devices
    ]
    spec = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": tuple(devices)})})
    predicted = plan_of(spec).layout.predicted
    layers = [
        span
        for span in play(spec)
        if isinstance(span, Span) and span.kind == "compute" and span.device == "d0" and span.layer >= 0
    ]
    took_s = max(span.end_s for span in layers) - min(span.start_s for span in layers)
    assert took_s == pytest.approx(predicted.step_s.exact, rel=0.05)
    assert predicted.step_s.eq5 < took_s
    waits = [span for span in play(spec) if isinstance(span, Span) and span.kind == "wait"]
    assert [span.device for span in waits].count("d0") == len(plan_of(spec).layout.split_layers)


def boundaries(spec):
    """How many messages a run delivers."""
    _, world = run_dying(spec, {})
    return world.delivered


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_server_may_fail_at_any_message_and_no_bit_changes(rank):
    spec = tight(GPT2, 0.3, new_tokens=3)
    plan = plan_of(spec)
    assert [shard.device for shard in columns_of(plan)][1:] == [2] and [*plan.layout.backups] == [2]
    undisturbed, _ = run_dying(spec, {})
    promotions = 0
    for number in range(boundaries(spec)):
        source, world = run_dying(spec, {rank: number}, seed=number)
        for ours, theirs in zip(source.logits[0], undisturbed.logits[0], strict=True):
            assert torch.equal(ours, theirs), number
        marks = [facts for name, facts in world.devices[0].marks if name == "promoted"]
        promotions += len(marks)
        for facts in marks:
            assert facts["lost"] == 2 and facts["epoch"] == 1 and facts["backups"][0][0] == 1
    assert (promotions > 0) == (rank == 2)


def test_a_backup_that_serves_two_dead_secondaries_answers_for_both():
    spec = tight(LLAMA, 0.7, rates=(4e10, 2.5e10, 2e10, 1e10), others=0.6, new_tokens=3)
    spec = spec.model_copy(update={"cluster": with_memory(spec.cluster, d3=4e8)})
    spec = spec.model_copy(update={"params": spec.params | {"primary": "d0"}})
    plan = plan_of(spec)
    assert [shard.device for shard in columns_of(plan)][1:] == [1, 2]
    assert {piece[0] for pieces in plan.layout.backups.values() for piece in pieces} == {3}
    undisturbed, _ = run_dying(spec, {})
    epochs = set()
    for first in range(0, 40, 3):
        for second in range(0, 40, 5):
            source, world = run_dying(spec, {1: second, 2: first}, seed=first)
            assert torch.equal(torch.stack(source.logits[0]), torch.stack(undisturbed.logits[0]))
            marks = [facts["epoch"] for name, facts in world.devices[0].marks if name == "promoted"]
            epochs.add(tuple(marks))
    assert epochs >= {(), (1,), (1, 2)}


def test_a_shard_spread_over_backups_stays_within_rounding():
    spec = tight(GPT2, 0.3, rates=(4e10, 2.5e10, 1e10, 9e9), new_tokens=3)
    shard = columns_of(plan_of(spec))[1]
    saved = room_of(spec.cluster, GPT2, spec.workload)
    free = saved.server_bytes(2)
    part = (shard.stop - shard.start) / GPT2.intermediate_size * len(plan_of(spec).layout.split_layers)
    small = spec.cluster.devices[2].memory_bytes - free + (0.6 * part) * saved.ffn_bytes + 2000
    spec = spec.model_copy(update={"cluster": with_memory(spec.cluster, d2=small, d3=small)})
    plan = plan_of(spec)
    assert len(plan.layout.backups[1]) == 2 and plan.layout.coverage == 1.0
    undisturbed, _ = run_dying(spec, {})
    source, _ = run_dying(spec, {1: 5})
    torch.testing.assert_close(source.logits[0], undisturbed.logits[0], rtol=1e-4, atol=1e-5)


def test_without_a_complete_backup_the_engine_handles_the_failure():
    with pytest.raises(PeerFailed, match="d2 failed"):
        run_dying(tight(GPT2, 0.3, backups="none"), {2: 5})


def test_in_the_simulated_world_a_backup_continues_where_its_secondary_failed():
    spec = tight(GPT2, 0.3, new_tokens=6)
    undisturbed = predict(spec)
    drop = DropDevice(at_s=undisturbed.latency_s / 2, device="d2")
    events = []
    report = predict(spec.model_copy(update={"scenario": Scenario(changes=(drop,))}), events.append)
    events = to_json(events)
    assert report.outcome.kind == "finished", report.outcome.sentence
    marks = [event for event in events if event.get("name") == "promoted"]
    assert [mark["facts"]["backups"][0][0] for mark in marks] == [1]
    assert not [event for event in events if event.get("name") == "reloaded"]
    served = {event["device"] for event in events if event.get("name") == "ffn" and event["token"] == 5}
    assert served == {"d0", "d1"}


def test_what_a_plan_may_need_beyond_its_prediction_is_said():
    spec = tight(GPT2, 0.3)
    plan = plan_of(spec)
    ranks = (1, 2, 3)  # secondary, backup, and a device with room for a copy
    pairs = {pair for rank in ranks for pair in ((0, rank), (rank, 0))}
    assert strategy("adaptlink").partners(spec.cluster, plan) == pairs


def test_moved_heads_count_with_the_device_that_has_their_cache():
    spec = tight(GROUPED, 1.1, rates=(4e10, 2.5e10), others=3, primary="d0")
    plan = plan_of(spec)
    rows = spec.workload.prompt_tokens + spec.workload.new_tokens - 2  # as the last token begins
    moved = sum(stop - start for _, _, start, stop in plan.layout.heads) // GROUPED.group_size
    kv = {
        item.device: item.facts["kv_bytes"]
        for item in play(spec)
        if isinstance(item, Mark) and item.name == "memory" and item.facts["kv_bytes"]
    }
    assert kv["d1"] == moved * rows * kv_bytes_per_row(GROUPED, 1)
