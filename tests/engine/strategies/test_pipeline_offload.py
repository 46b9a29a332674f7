"""The pipeline with offloading: layers that share slots, the worked example, and simulated times."""

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from test_lime_run import DEEP, GPT, layer_bytes, spans, tight, token_times

from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.ops.sizes import weight_bytes
from engine.strategies.lime.placement import best_placement
from engine.strategies.lime.ring import step_times
from engine.strategies.pipeline_offload.slots import cycles_of, num_missing, turns_of
from engine.strategies.shared import stages as shared_stages
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.pipeline import ends_placement
from tests.support.lime_cases import EXAMPLE, MB, MS
from tests.support.offload_events import offload_events
from tests.support.small_cases import GPT2, MODELS, plan_of, play, sends, spec_of, star


def steady_ms(num_micro_batches):
    """The example of LIME's ring: four layers each, of which three fit."""
    cycles = [cycles_of(4, 1)] * 2
    steps = [EXAMPLE.step] * 6
    times = offload_events((4, 4), cycles, EXAMPLE.load_s, steps, num_micro_batches)
    return (times[-1] - times[-2]) / MS


def test_the_worked_example_and_what_lime_makes_of_it():
    assert num_missing(4, 300 * MB, 100 * MB, 0) == 1 and cycles_of(4, 1) == ((0, 2),)
    assert steady_ms(1) == pytest.approx(152)
    assert steady_ms(2) == pytest.approx(240)
    lime_ms = [best_placement(EXAMPLE, "exact", 0, True, num).step_s / MS for num in (1, 2)]
    assert [152 / lime_ms[0], 240 / lime_ms[1]] == pytest.approx([1.31, 1.69], abs=5e-3)


@pytest.mark.parametrize("layers", range(1, 12))
def test_every_slot_has_turns_of_its_own_and_memory_is_full(layers):
    for missing in range(layers):
        cycles = cycles_of(layers, missing)
        taking_turns = [position for cycle in cycles for position in cycle]
        assert len(set(taking_turns)) == len(taking_turns)
        assert layers - len(taking_turns) + len(cycles) == layers - missing
        assert all(len(cycle) > 1 and list(cycle) == sorted(cycle) for cycle in cycles)
        assert sorted(turns_of(cycles)) == sorted(turns_of(cycles).values()) == sorted(taking_turns)


def overfull(model=GPT, rates=(1e9, 2e9), layers=3.0, workload=None, **more):
    cluster = tight(model, rates, layers, **more)
    return spec_of("pipeline_offload", model, cluster, **(workload or {}))


def events_of(spec, plan, num_micro_batches):
    model, demand = spec.model, demand_of(spec.model, spec.workload, False)
    ranks, rows = [stage.device for stage in plan.layout.stages], spec.workload.prompt_tokens
    lengths = [(rows, 0), *((1, rows + token) for token in range(max(0, spec.workload.new_tokens - 1)))]
    steps = [step_times(spec.cluster, model, ranks, demand, *one) for one in lengths]
    sizes = [stage.num_layers for stage in plan.layout.stages]
    cycles = [plan.layout.cycles[rank] for rank in ranks]
    load_s = [layer_bytes(model) / spec.cluster.devices[rank].disk_byte_per_s for rank in ranks]
    return offload_events(sizes, cycles, load_s, steps, num_micro_batches)


@pytest.mark.parametrize("disk_byte_per_s", [1e6, 2e7, 1e9])
def test_one_request_takes_as_long_as_the_event_model_says(disk_byte_per_s):
    spec = overfull(disk_byte_per_s=disk_byte_per_s, workload={"new_tokens": 5})
    plan = plan_of(spec)
    assert any(plan.layout.cycles.values())
    assert token_times(play(spec, plan)) == pytest.approx(events_of(spec, plan, 1))


def test_every_pass_of_every_micro_batch_loads_every_layer_that_takes_turns():
    spec = overfull(workload={"new_tokens": 3, "requests": 2, "pattern": "bursty"})
    plan, trace = plan_of(spec), play(spec)
    for stage in plan.layout.stages:
        taking_turns = [p for cycle in plan.layout.cycles[stage.device] for p in cycle]
        loads = spans(trace, "load", f"d{stage.device}")
        assert len(loads) == 2 * len(taking_turns) * 3 * 2
        assert sum(load.bytes for load in loads) == len(taking_turns) * 6 * sum(
            weight_bytes(GPT, Slice(layer=0, part=part)) for part in ("attention", "ffn")
        )


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("layers", [1.8, 2.4, 3.0])
def test_stages_far_larger_than_their_devices_run_within_memory(name, layers):
    workload = {"requests": 2, "pattern": "bursty"}
    spec = overfull(DEEP[name], layers=layers, extra_bytes=4.5e4, workload=workload)
    plan = plan_of(spec)
    assert sum(stage.num_layers for stage in plan.layout.stages) == 8
    assert len(token_times(play(spec, plan))) == max(1, spec.workload.new_tokens)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_where_everything_fits_it_is_the_plain_pipeline(model):
    ways = [
        spec_of(name, model, star((1e9, 2e9, 1e9)), requests=2, pattern="bursty", **params)
        for name, params in (("pipeline_offload", {"schedule": "flush"}), ("gpipe", {}))
    ]
    assert plan_of(ways[0]).holdings == plan_of(ways[1]).holdings
    offload, plain = map(play, ways)
    assert not spans(offload, "load") and sends(offload) == sends(plain)


@pytest.mark.parametrize("layers", [(1.5, 4.5), (3.0, 9.0)], ids=["taking turns", "all fit"])
def test_a_device_with_three_times_the_free_memory_has_three_times_the_layers(layers):
    even = overfull()
    demand = demand_of(GPT, even.workload, False)
    rooms = shared_stages.all_rooms(
        even.cluster, GPT, demand, ends_placement("pipeline_offload", even.cluster, GPT)
    )
    size_bytes = shared_stages.layer_bytes(GPT, demand)
    devices = tuple(
        device.model_copy(update={"memory_bytes": device.memory_bytes - room.bytes + number * size_bytes})
        for device, room, number in zip(even.cluster.devices, rooms, layers, strict=True)
    )
    spec = even.model_copy(update={"cluster": even.cluster.model_copy(update={"devices": devices})})
    assert [stage.num_layers for stage in plan_of(spec).layout.stages] == [2, 6]


def test_waiting_for_all_micro_batches_takes_longer():
    workload = {"requests": 3, "pattern": "bursty", "new_tokens": 5}
    ways = [overfull(workload=workload | {"schedule": schedule}) for schedule in ("continuous", "flush")]
    continuous, flush = (token_times(play(spec))[-1] for spec in ways)
    assert continuous < flush


def test_devices_without_room_for_a_slot_are_named():
    with pytest.raises(PlanError, match=r"needs 3 layers .* has .* [kM]?B"):
        plan_of(spec_of("pipeline_offload", GPT2, star((1e9, 1e9), memory_bytes=5e4)))


@settings(max_examples=20)
@given(
    rates=st.lists(st.sampled_from((1e9, 2e9, 5e9)), min_size=1, max_size=3),
    layers=st.sampled_from((1.5, 2.0, 2.5, 3.0)),
    disk_byte_per_s=st.sampled_from((1e6, 2e7, 1e9)),
    new_tokens=st.sampled_from((6, 20)),
    assumed=st.integers(1, 20),
)
@example(rates=[1e9], layers=2.5, disk_byte_per_s=1e6, new_tokens=20, assumed=1)
def test_who_knows_how_long_answers_become_is_never_slower(
    rates, layers, disk_byte_per_s, new_tokens, assumed
):
    def total_s(assumed_tokens):
        cluster = tight(GPT, tuple(rates), layers, disk_byte_per_s=disk_byte_per_s)
        sizes = {"rows": 8, "new_tokens": new_tokens, "assumed_tokens": assumed_tokens}
        return token_times(play(spec_of("pipeline_offload", GPT, cluster, **sizes)))[-1]

    try:
        guessed = total_s(min(assumed, new_tokens))
        known = total_s(0)
    except PlanError:
        reject()
    assert known <= guessed * (1 + 1e-9)
