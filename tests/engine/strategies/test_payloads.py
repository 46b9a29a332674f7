"""What crosses the links, counted in the simulated world, is exactly what the formulas say."""

from collections import defaultdict
from itertools import pairwise

import pytest

from engine.models import catalogue
from engine.strategies.registry import STRATEGIES
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, play, sends, spec_of, star, supported

ELEMENT = 4


def elements_per_layer(trace):
    """Payload elements that each device sent, by (device, layer, token)."""
    counted = defaultdict(int)
    for span in sends(trace):
        counted[span.device, span.layer, span.token] += span.payload_bytes // ELEMENT
    return counted


@pytest.mark.parametrize("gather", ["direct", "ring"])
@pytest.mark.parametrize("devices", [2, 3, 4, 6])
def test_voltage_sends_k_minus_1_times_n_f_over_k_per_device_and_layer(devices, gather):
    rows, model = 12, BERT
    trace = play(spec_of("voltage", model, star([1e10] * devices, terminal=True), rows=rows, gather=gather))
    counted = elements_per_layer(trace)
    for device in range(devices):
        for layer in range(model.num_layers - 1):  # after the last layer shards go to the terminal
            expected = (devices - 1) * rows * model.hidden_size // devices
            assert counted[f"d{device}", layer, 0] == expected
        last = counted[f"d{device}", model.num_layers - 1, 0]
        assert last == rows * model.hidden_size // devices
    assert counted["term", -1, 0] == devices * rows * model.hidden_size


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize(
    ("name", "devices"),
    [("megatron", 2), ("megatron", 4), ("megatron", 6), ("deepspeed", 2), ("deepspeed", 4)],
)
def test_tensor_parallel_sends_4_k_minus_1_times_n_f_over_k_per_device_and_layer(name, devices, model):
    rows = 12
    trace = play(spec_of(name, model, star([1e10] * devices), rows=rows, all_reduce="ring"))
    counted = elements_per_layer(trace)
    for device in range(devices):
        for layer in range(model.num_layers):
            expected = 4 * (devices - 1) * rows * model.hidden_size // devices
            assert counted[f"d{device}", layer, 0] == expected


def test_megatrons_decode_steps_send_a_row_as_the_prompt_sends_all():
    model, devices = GPT2, 4
    counted = elements_per_layer(
        play(spec_of("megatron", model, star([1e10] * devices), rows=8, all_reduce="ring"))
    )
    for token in (1, 2, 3):
        assert counted["d1", 0, token] == 4 * (devices - 1) * model.hidden_size // devices


def test_both_gathers_of_uneven_shards_carry_the_same_total():
    totals = {}
    for gather in ("direct", "ring"):
        spec = spec_of("voltage", BERT, star([4e10, 1e10, 3e9]), gather=gather, ratio="proportional")
        totals[gather] = sum(span.payload_bytes for span in sends(play(spec)))
    assert totals["direct"] == totals["ring"]


def test_trimming_keys_changes_no_message():
    volumes = []
    for trim in (False, True):
        spec = spec_of("voltage", LLAMA, star([1e10] * 3), rows=12, causal_trim=trim, new_tokens=1)
        volumes.append(sorted((s.device, s.peer, s.layer, s.payload_bytes) for s in sends(play(spec))))
    assert volumes[0] == volumes[1]


def test_voltage_decodes_without_messages_when_the_source_owns_the_cache():
    trace = play(spec_of("voltage", GPT2, star([4e10, 1e10, 1e10])))
    assert {span.token for span in sends(trace)} == {0}


def test_voltages_owner_gets_and_gives_one_row_per_token():
    trace = play(spec_of("voltage", GPT2, star([1e10, 4e10, 1e10]), decode_owner="d2"))
    row = GPT2.hidden_size * ELEMENT
    decode = [(s.device, s.peer, s.payload_bytes) for s in sends(trace) if s.token > 0]
    assert decode == [("d0", "d2", row), ("d2", "d0", row)] * 3


def test_a_pipeline_of_k_stages_makes_k_hops_per_token_and_returns_one_row():
    devices, rows, row = 3, 12, GPT2.hidden_size * ELEMENT
    trace = play(spec_of("gpipe", GPT2, star([1e10] * devices), rows=rows))
    by_token = defaultdict(list)
    for span in sends(trace):
        by_token[span.token].append((span.device, span.peer, span.payload_bytes // row))
    assert by_token[0] == [("d0", "d1", rows), ("d1", "d2", rows), ("d2", "d0", 1)]
    for token in (1, 2, 3):
        assert by_token[token] == [("d0", "d1", 1), ("d1", "d2", 1), ("d2", "d0", 1)]


ON_ONE_DEVICE = [
    pytest.param(chosen.name, model, id=f"{model.family}-{chosen.name}")
    for model in MODELS
    for chosen in STRATEGIES
    if supported(chosen.name, star([1e10]), model)
]


@pytest.mark.parametrize(("name", "model"), ON_ONE_DEVICE)
def test_one_device_sends_nothing(name, model):
    assert sends(play(spec_of(name, model, star([1e10]), requests=2, pattern="bursty"))) == []


SENDS_ROWS = [chosen.name for chosen in STRATEGIES if chosen.name != "cloud_only" and not chosen.drafts]
"""Those send token ids."""


@pytest.mark.parametrize("name", SENDS_ROWS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
def test_one_device_beside_a_terminal_only_takes_in_and_gives_out(name, model):
    trace = play(spec_of(name, model, star([1e10], terminal=True), rows=9))
    row = model.hidden_size * ELEMENT
    # Voltage's last shards go out whole, as in the paper; the others send what is needed
    out = 1 if model.causal and name != "voltage" else 9
    prompt = [(s.device, s.peer, s.payload_bytes // row) for s in sends(trace) if s.token == 0]
    assert prompt == [("term", "d0", 9), ("d0", "term", out)]
    decode = [(s.device, s.peer, s.payload_bytes // row) for s in sends(trace) if s.token > 0]
    assert decode == [("term", "d0", 1), ("d0", "term", 1)] * (3 if model.causal else 0)


def test_equal_stages_take_m_plus_k_minus_1_times_the_stage_time():
    """GPipe's makespan with hops that take (almost) no time."""
    devices, batches = 3, 4
    cluster = star([1e9] * devices, message_overhead_s=0.0, op_overhead_s=0.0, compute_model="flops")
    fast = [link.model_copy(update={"bit_per_s": 1e15}) for link in cluster.links]
    cluster = cluster.model_copy(update={"links": tuple(fast)})
    trace = play(spec_of("gpipe", BERT, cluster, requests=batches, pattern="bursty"))
    blocks = [s for s in trace if getattr(s, "kind", "") == "compute" and s.name == "block"]
    stage_s = blocks[0].end_s - blocks[0].start_s
    began_s = min(span.start_s for span in blocks)
    makespan_s = max(span.end_s for span in blocks) - began_s
    assert makespan_s == pytest.approx((batches + devices - 1) * stage_s, rel=0.01)


@pytest.mark.parametrize(("batches", "bubble"), [(1, 0.75), (4, 0.429), (8, 0.273)])
def test_four_equal_stages_idle_for_the_known_share_of_a_flush(batches, bubble):
    """GPipe: (K-1)/(M+K-1)."""
    cluster = star([1e9] * 4, message_overhead_s=0.0, op_overhead_s=0.0, compute_model="flops")
    fast = [link.model_copy(update={"bit_per_s": 1e15}) for link in cluster.links]
    model = BERT.model_copy(update={"num_layers": 4})
    cluster = cluster.model_copy(update={"links": tuple(fast)})
    trace = play(spec_of("gpipe", model, cluster, requests=batches, pattern="bursty"))
    blocks = [s for s in trace if getattr(s, "kind", "") == "compute" and s.name == "block"]
    span_s = max(s.end_s for s in blocks) - min(s.start_s for s in blocks)
    busy_s = sum(s.end_s - s.start_s for s in blocks if s.device == "d1")
    assert 1 - busy_s / span_s == pytest.approx(bubble, abs=5e-3)


@pytest.mark.parametrize(
    ("name", "per_device", "pipeline"),
    [
        ("gpt2", 110.6e3, 4 * 3072),
        ("llama-3.3-70b", 3.93e6, 65.5e3),
    ],
)
def test_what_four_devices_send_per_token_of_a_real_model(name, per_device, pipeline):
    """Tensor parallelism: each device 2L·2(D-1)/D·z in the layers; a pipeline: D·z in all."""
    model = catalogue.resolve(name, "random")[0]
    cluster = star([1e12] * 4, memory_bytes=2e11)
    for strategy, total in (("megatron", 4 * per_device), ("gpipe", pipeline)):
        params = {"all_reduce": "ring"} if strategy == "megatron" else {}
        trace = play(spec_of(strategy, model, cluster, rows=4, new_tokens=2, **params))
        token = [s for s in sends(trace) if s.token == 1 and (s.layer >= 0 or strategy == "gpipe")]
        assert sum(s.payload_bytes for s in token) == pytest.approx(total, rel=1e-3)


def test_a_stage_finishes_one_micro_batch_before_it_starts_the_next():
    trace = play(spec_of("gpipe", GPT2, star([1e10] * 2), requests=4, pattern="bursty"))
    for device in ("d0", "d1"):
        blocks = [
            (s.token, s.request, s.layer)
            for s in trace
            if getattr(s, "kind", "") == "compute" and s.name == "block" and s.device == device
        ]
        assert blocks == sorted(blocks)
        ends = [s for s in trace if getattr(s, "kind", "") == "compute" and s.device == device]
        ends.sort(key=lambda span: span.start_s)
        assert all(a.end_s <= b.start_s + 1e-12 for a, b in pairwise(ends))


def test_stages_overlap_on_different_micro_batches():
    trace = play(spec_of("gpipe", GPT2, star([1e8] * 2), requests=3, pattern="bursty", new_tokens=1))
    spans = {
        device: [
            s
            for s in trace
            if getattr(s, "kind", "") == "compute" and s.name == "block" and s.device == device
        ]
        for device in ("d0", "d1")
    }
    assert any(
        a.start_s < b.end_s and b.start_s < a.end_s and a.request > b.request
        for a in spans["d0"]
        for b in spans["d1"]
    )
