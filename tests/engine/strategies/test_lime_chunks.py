"""LIME runs a long prompt in parts: fewer bytes at a time, the same results, every block loaded once."""

import pytest
import torch
from test_lime_run import DEEP, GPT, case, layer_bytes, marks, spans, tight
from test_lime_worlds import operations

from bench.strategies.planners import draw_run, seconds
from engine.domain.errors import PlanError
from engine.domain.events import to_json
from engine.domain.scenario import DropDevice, Scenario
from engine.ops.sizes import kv_bytes_per_row
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.lime.run import turns_of
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import plan_of, play, prompts, spec_of, star

LLAMA = DEEP["small-llama"].model_copy(update={"max_positions": 256})
LONG_GPT = GPT.model_copy(update={"max_positions": 256})
CASES = {
    "two-devices": case(LONG_GPT, rows=23, prefill_chunk=5, assumed_tokens=0, num_segments=2),
    "at-a-terminal-with-a-burst": case(
        LLAMA,
        tight(LLAMA, (1e9, 2e9, 1e9), 2.8, terminal=True),
        rows=23,
        requests=2,
        pattern="bursty",
        new_tokens=3,
        prefill_chunk=8,
        assumed_tokens=0,
    ),
    "alone": case(
        LONG_GPT, tight(LONG_GPT, (1e9,), 7.5), rows=20, prefill_chunk=7, num_segments=2, assumed_tokens=0
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_of_a_prompt_in_parts_are_those_of_one_device(name):
    spec = CASES[name]
    plan = plan_of(spec)
    assert plan.layout.chunk_rows == spec.params["prefill_chunk"]
    work = spec.workload
    single = spec_of("single", spec.model, star((1e9,)), work.prompt_tokens, work.new_tokens, work.requests)
    expected = run_in_memory(single, plan_of(single), prompts(single))[0].logits
    source, world = run_in_memory(spec, plan, prompts(spec), seed=1)
    for request, rows in expected.items():
        for ours, theirs in zip(rows, source.logits[request], strict=True):
            assert torch.equal(ours.argmax(-1), theirs.argmax(-1))
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for device in world.devices:
        assert device.ledger.peak_bytes <= device.device.memory_bytes


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_in_parts_loads_every_streamed_block_once_and_computes_every_row_once(name):
    spec = CASES[name]
    trace, plan = play(spec), plan_of(spec)
    prompt_loads = [span for span in spans(trace, "load") if span.token == 0]
    streamed = sum(len(plan.layout.streamed[rank]) for rank in plan.layout.ranks) * plan.layout.num_segments
    assert streamed and len(prompt_loads) == streamed
    parts = -(-spec.workload.prompt_tokens // spec.params["prefill_chunk"])
    attention = [
        span for span in spans(trace, "compute") if span.token == 0 and span.name in ("block", "attention")
    ]
    assert len(attention) == parts * spec.model.num_layers * spec.workload.requests
    assert len(marks(trace, "token_emitted")) == spec.workload.requests * spec.workload.new_tokens


def test_parts_cover_the_prompt_and_only_the_last_one_has_a_result():
    from engine.program.strategy import Step

    prompt = Step(phase="prefill", cache="r0", batch=1, start=0, rows=11, index=0, requests=(0,))
    token = prompt.model_copy(update={"phase": "decode", "start": 11, "rows": 1, "index": 1})
    turns = turns_of([prompt, token], 4)
    assert [(t.number, t.step.start, t.step.rows, t.last) for t in turns] == [
        (0, 0, 4, False),
        (0, 4, 4, False),
        (0, 8, 3, True),
        (1, 11, 1, True),
    ]
    assert [turn.step for turn in turns_of([prompt, token], 0)] == [prompt, token]


def scarce(rows, **more):
    """Two devices with room for all layers, their KV caches, and the working set of 20 rows."""
    cluster = star((1e9, 1e9), memory_bytes=room_for(187, 4.5), disk_byte_per_s=1e7)
    return spec_of("lime", LONG_GPT, cluster, rows=rows, new_tokens=8, **more)


def room_for(tokens, layers):
    """Bytes for so many layers with their KV caches, the tables of both ends, and 40 kB to compute in."""
    kv_bytes = tokens * kv_bytes_per_row(LONG_GPT, LONG_GPT.num_kv_heads)
    tables = 4 * LONG_GPT.hidden_size * (LONG_GPT.vocab_size + LONG_GPT.max_positions)
    return layers * (layer_bytes(LONG_GPT) + kv_bytes) + tables + 4e4


def test_the_working_set_of_a_long_prompt_does_not_refuse_a_plan():
    assert plan_of(scarce(20)).layout.chunk_rows == 0
    with pytest.raises(PlanError):
        plan_of(scarce(180, prefill_chunk=180))
    spec = scarce(180)
    plan = plan_of(spec)
    assert 0 < plan.layout.chunk_rows < 180
    report = predict(spec)
    assert report.outcome.kind == "finished"
    for device in report.devices:
        assert device.peak_memory_bytes <= spec.cluster.devices[0].memory_bytes


def test_after_a_loss_the_longer_prompt_passes_in_parts():
    """Three devices lose one: the other two have room for the layers, not for 150 tokens at a time."""
    cluster = star((1e9, 1e9, 1e9), memory_bytes=room_for(159, 4.5), disk_byte_per_s=1e7)
    spec = spec_of("lime", LONG_GPT, cluster, rows=100, new_tokens=60, mode="exact")
    late_s = predict(spec).requests[0].token_s[50]
    lossy = spec.model_copy(
        update={"scenario": Scenario(changes=(DropDevice(at_s=late_s, device="d2"),)), "failover": "replan"}
    )
    report = predict(lossy)
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert len(report.requests[0].token_s) == 60
    assert [recovery.device for recovery in report.recoveries]


def test_both_worlds_run_a_prompt_in_the_same_parts(play_for_real):
    spec = CASES["at-a-terminal-with-a-burst"].model_copy(update={"dilation": "native"})
    real = play_for_real({"parts": spec})["parts"]
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished" and real["report"]["outcome"]["kind"] == "finished"
    assert real["report"]["correctness"]["ok"], real["report"]["correctness"]
    assert operations(to_json(trace)) == operations(real["trace"])


@pytest.mark.parametrize(("index", "first", "rest"), [(6, "d0", "d1"), (10, "d0", "d1")])
def test_the_best_planner_lets_a_prompt_pass_in_parts_where_a_fast_device_then_has_room_for_one_layer_more(
    index, first, rest
):
    """Five layers fit on the fast device beside a part of the prompt, four beside all of it."""
    run = draw_run(index).model_copy(update={"strategy": "lime"})
    by_hand = {"devices": [{"device": first, "layers": 1}, {"device": rest, "layers": 5}]}
    hand_s = seconds(run, {"planner": "best", "plan": by_hand})
    assert hand_s is not None
    assert seconds(run, {"planner": "best"}) <= 1.001 * hand_s
    assert seconds(run, {"planner": "paper"}) > 1.3 * hand_s


def test_the_best_planner_takes_slower_tokens_for_a_faster_prompt():
    """Two devices share a prompt, whose parts overlap; one alone has the faster tokens."""
    run = draw_run(33).model_copy(update={"strategy": "lime"})
    shared = {"devices": [{"device": "d2", "layers": 4}, {"device": "d0", "layers": 2}]}
    hand_s = seconds(run, {"planner": "best", "plan": shared})
    assert hand_s is not None
    assert seconds(run, {"planner": "best"}) <= 1.1 * hand_s
    assert seconds(run, {"planner": "paper"}) > 1.25 * hand_s
