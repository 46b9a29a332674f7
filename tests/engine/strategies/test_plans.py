"""Plans for random clusters: every part covered once, no memory exceeded, refusals with a remedy."""

from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Slice
from engine.domain.workload import Workload
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.strategies.registry import STRATEGIES, strategy
from engine.strategies.shared.demand import demand_of, weights_bytes
from engine.strategies.shared.shares import head_shares, largest_remainder
from engine.strategies.shared.stages import fill, layer_bytes
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, spec_of, star, supported
from tests.support.variants import variants

BY_HAND = {
    "accelerate": [
        {"device_map": way, "memory_frac": frac}
        for way in ("auto", "balanced_low_0", "sequential")
        for frac in (0.7, 1.0)
    ],
    "gpipe": [*({"planner": "paper", "by": by} for by in ("memory", "flops", "even")), {"planner": "best"}],
    "edgeshard": [
        {"objective": "latency"},
        {"objective": "throughput", "schedule": "bubbles"},
        {"planner": "best"},
    ],
    "megatron": [
        {"planner": "paper"},
        {"planner": "paper", "shares": "proportional"},
        {"planner": "best"},
        {"planner": "best", "head": "columns"},
    ],
    "deepspeed": [{}, {"planner": "best"}],
    "galaxy": [{}, {"overlap": False, "row_shares": "proportional"}, {"planner": "best"}],
    "tpi_llm": [{}, {"window": 1, "ffn_split": "equal"}, {"window": 3, "retain_every": 2}],
    "tpi_llm_offload": [{}, {"window": 1}, {"window": 4}],
    "voltage": [
        {**way, "causal_trim": trim}
        for way in ({}, {"ratio": "proportional"}, {"planner": "best"})
        for trim in (False, True)
    ]
    + [
        {"last_layer_rows": "needed", "repartition": True},
        {"decode": "recompute", "ratio": "proportional"},
        {"fallback": "single"},
    ],
    "edgeformer": [{}, {"block_alloc": "even", "scheduling": "static"}],
    "lime": [
        {},
        {"mode": "dp"},
        {"mode": "printed", "fine_grained": False},
        {"online_planner": "layers", "kv_transfer": False},
        {"mode": "exact", "assumed_tokens": 12},
        {"prefill_chunk": 3},
    ],
    "mcu": [{}, {"group_size": 2}, {"allow_kv_dup": True}],
    "adaptlink": [{}, {"primary_share": 0.5, "beta": 1.0}, {"max_secondaries": 2, "backups": "none"}],
    "edge_only": [{}, {"bits": "4"}],
}
"""Sets of parameters whose numbers matter; other strategies get what their choices give."""

VARIANTS = variants(BY_HAND)
clusters = st.builds(
    star,
    st.lists(st.floats(1e8, 1e12), min_size=1, max_size=7),
    terminal=st.booleans(),
    half_rows=st.sampled_from([0.0, 24.0]),
)


@settings(max_examples=60, deadline=None)
@given(clusters, st.sampled_from(MODELS), st.integers(1, 40), st.data())
def test_every_plan_covers_every_part_once_per_phase(cluster, model, rows, data):
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    params = data.draw(st.sampled_from(VARIANTS[name]))
    assume(supported(name, cluster, model))
    plan = plan_of(spec_of(name, model, cluster, rows=rows, **params))
    plan.validate_cover(model, rows, generates=model.causal)
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(2e4, 4e5), min_size=1, max_size=6),
    st.sampled_from(MODELS),
    st.sampled_from(["sporadic", "bursty"]),
    st.data(),
)
def test_a_plan_that_is_made_never_runs_out_of_memory(memories, model, pattern, data):
    """The run's ledger, which counts every byte, agrees with the planner; else the planner says no."""
    name = data.draw(st.sampled_from(sorted(VARIANTS)))
    params = data.draw(st.sampled_from(VARIANTS[name]))
    cluster = star([1e10] * len(memories))
    devices = [
        d.model_copy(update={"memory_bytes": m}) for d, m in zip(cluster.devices, memories, strict=True)
    ]
    cluster = cluster.model_copy(update={"devices": tuple(devices)})
    assume(supported(name, cluster, model))
    spec = spec_of(name, model, cluster, requests=2, pattern=pattern, **params)
    try:
        plan = plan_of(spec)
    except PlanError as error:
        assert "needs" in str(error) and "has" in str(error) and str(error).endswith(".")
        return
    play(spec, plan)  # raises OutOfMemory if the planner was wrong


@given(
    st.integers(0, 300),
    st.lists(st.floats(0, 1e3), min_size=1, max_size=9).filter(lambda weights: sum(weights) > 1e-6),
)
def test_largest_remainder_gives_all_units_and_no_quota_is_missed_by_one(total, weights):
    shares = largest_remainder(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * weight / sum(weights)) < 1 + 1e-6


def test_largest_remainder_breaks_ties_to_the_lowest_index():
    assert largest_remainder(12, [1, 0.5, 0.25]) == (7, 3, 2)
    assert largest_remainder(4, [1, 1, 1]) == (2, 1, 1)
    assert largest_remainder(7, [1, 1, 1, 1, 1]) == (2, 2, 1, 1, 1)


def test_excess_over_a_cap_goes_to_the_first_with_room():
    assert fill([5, 4, 3], [3, 9, 9]) == (3, 6, 3)
    assert fill([6, 3, 3], [4, 4, 9]) == (4, 4, 4)
    assert fill([2, 2], [2, 2]) == (2, 2)


def sized(cluster, memories):
    devices = [
        d.model_copy(update={"memory_bytes": m}) for d, m in zip(cluster.devices, memories, strict=True)
    ]
    return cluster.model_copy(update={"devices": tuple(devices)})


def stages(plan):
    return [(stage.device, stage.num_layers) for stage in plan.layout.stages]


def deep(layers, **more):
    return GPT2.model_copy(update={"num_layers": layers, **more})


def test_stages_by_memory_follow_memory_and_by_flops_follow_speed():
    model = deep(12)
    unit = layer_bytes(model, demand_of(model, Workload(prompt_tokens=11, new_tokens=4), False))
    cluster = sized(
        star([1e9, 4e9, 1e9], terminal=True, compute_model="flops"),
        [8.9 * unit, 8.9 * unit, 32.9 * unit, 400 * unit],
    )
    assert stages(plan_of(spec_of("gpipe", model, cluster, by="memory"))) == [(0, 2), (1, 2), (2, 8)]
    assert stages(plan_of(spec_of("gpipe", model, cluster, by="flops"))) == [(0, 2), (1, 8), (2, 2)]
    assert stages(plan_of(spec_of("gpipe", model, cluster, by="even"))) == [(0, 4), (1, 4), (2, 4)]


def test_a_stage_never_exceeds_its_cap_and_the_first_device_with_room_takes_the_rest():
    model = deep(12)
    unit = layer_bytes(model, demand_of(model, Workload(prompt_tokens=11, new_tokens=4), False))
    cluster = sized(star([1e9] * 3, terminal=True), [4 * unit, 40 * unit, 40 * unit, 400 * unit])
    plan = plan_of(spec_of("gpipe", model, cluster, by="even"))
    capped = stages(plan)[0][1]
    assert capped < 4
    assert stages(plan) == [(0, capped), (1, 8 - capped), (2, 4)]


def test_a_pipeline_starts_at_a_source_that_is_a_worker():
    plan = plan_of(spec_of("gpipe", GPT2, star([1e10] * 3, source=1)))
    assert [stage.device for stage in plan.layout.stages] == [1, 0, 2]


def test_a_pipeline_without_room_names_layers_and_devices():
    model = deep(12)
    unit = layer_bytes(model, demand_of(model, Workload(prompt_tokens=11, new_tokens=4), False))
    cluster = sized(star([1e9] * 2, terminal=True), [4 * unit, 5 * unit, 400 * unit])
    with pytest.raises(PlanError, match=r"needs 12 layers of .* d0 has .* for \d, d1 has .* for \d: add"):
        plan_of(spec_of("gpipe", model, cluster))


@pytest.mark.parametrize(
    ("model", "weights", "expected"),
    [
        (GPT2, [1, 1, 1], (2, 1, 1)),
        (GPT2, [1] * 6, (1, 1, 1, 1, 0, 0)),
        (LLAMA, [1, 1], (2, 2)),
        (LLAMA, [3, 1], (4, 0)),
        (LLAMA, [1, 1, 1], (2, 1, 1)),
    ],
)
def test_heads_are_shared_by_kv_groups_while_there_are_enough(model, weights, expected):
    assert head_shares(model, weights) == expected


def test_voltage_names_every_device_that_cannot_hold_all_layers():
    cluster = sized(star([1e10] * 3), [4e8, 1e5, 5e4])
    with pytest.raises(PlanError, match=r"d1 needs .*B and has .* kB, d2 needs .*keeps all layers"):
        plan_of(spec_of("voltage", GPT2, cluster))


def test_a_tied_table_on_the_source_counts_once():
    plan = plan_of(spec_of("single", GPT2, star([1e10])))
    parts = [Slice(layer=-1, part="embed"), Slice(layer=-1, part="lm_head")]
    layers = [Slice(layer=n, part=part) for n in range(GPT2.num_layers) for part in ("attention", "ffn")]
    table = GPT2.vocab_size * GPT2.hidden_size * GPT2.element_bytes
    separate = sum(weight_bytes(GPT2, piece) for piece in (*parts, *layers))
    assert weights_bytes(plan, GPT2, 0) == separate - table


def test_demand_counts_sequences_and_the_rows_that_are_fed_back():
    burst = Workload(prompt_tokens=10, new_tokens=4, requests=3, pattern="bursty")
    batched, micro = demand_of(LLAMA, burst, True), demand_of(LLAMA, burst, False)
    assert (batched.batch, batched.sequences, micro.batch, micro.sequences) == (3, 3, 1, 3)
    assert batched.cached_rows == 13
    assert micro.kv_bytes(LLAMA, 2) == 3 * 13 * kv_bytes_per_row(LLAMA, 2)
    alone = demand_of(LLAMA, Workload(prompt_tokens=10, new_tokens=4, requests=3), True)
    assert (alone.batch, alone.sequences) == (1, 1)


def test_encoders_and_long_prompts_are_refused_before_anything_is_planned():
    with pytest.raises(SpecError, match="small-bert is an encoder"):
        plan_of(spec_of("single", BERT, star([1e10]), new_tokens=2))
    with pytest.raises(SpecError, match="need 65 positions, small-gpt2 has 64"):
        plan_of(spec_of("single", GPT2, star([1e10]), rows=62, new_tokens=4))
    assert plan_of(spec_of("single", GPT2, star([1e10]), rows=61, new_tokens=4))


def test_single_takes_the_source_or_the_fastest_worker_for_a_terminal():
    assert plan_of(spec_of("single", GPT2, star([1e9, 4e9]))).layout.device == 0
    assert plan_of(spec_of("single", GPT2, star([1e9, 4e9], terminal=True))).layout.device == 1
    assert plan_of(spec_of("single", GPT2, star([1e9, 4e9]), device="d1")).layout.device == 1
    with pytest.raises(SpecError, match="term is a terminal"):
        plan_of(spec_of("single", GPT2, star([1e9], terminal=True), device="term"))


def test_a_measured_device_is_planned_without_this_hosts_times():
    plan = plan_of(spec_of("gpipe", GPT2, star([1e9, 1e9], compute_model="measured"), by="flops"))
    assert [size for _, size in stages(plan)] == [2, 1]


def test_an_unknown_strategy_is_refused_with_the_known_ones():
    names = [chosen.name for chosen in STRATEGIES]
    with pytest.raises(SpecError, match=f"magic, which is unknown: choose one of {', '.join(names)}"):
        strategy("magic")


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_every_parameter_has_a_description_and_a_default(chosen):
    for name, field in chosen.Params.model_fields.items():
        assert field.description and field.description.endswith("."), name
        assert not field.is_required(), name


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_true_is_no_number_of_a_parameter(chosen):
    """Python takes it for 1: `--set window=true` meant a window of one."""
    for name, field in chosen.Params.model_fields.items():
        kinds = {field.annotation, *get_args(field.annotation)}
        if {int, float} & kinds and bool not in kinds:
            with pytest.raises(ValidationError, match=name):
                chosen.Params.model_validate({name: True})
