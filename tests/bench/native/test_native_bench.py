"""The benchmark of native speed: its baseline computes a model, its table has a cell per system and place."""

import pytest
import torch

from bench.native import native
from bench.native.gloo_rank import Rank, Task, _turned, _turns
from bench.native.native import PLACES, model_of_105m, table_of
from bench.native.native_bounds import Place, Speed, bounds_at, step_bytes
from bench.native.native_step import profile_of
from engine.domain.report import RunReport
from engine.domain.trace import Span
from engine.ops.sizes import num_parameters
from engine.runs.predict import prepare

SMALL = Task("tensor", 0, ("127.0.0.1",), 2, 16, 2, 32, 50, 5, 3)


def test_the_baselines_steps_after_a_prompt_see_what_a_longer_prompt_sees():
    torch.manual_seed(0)
    rank = Rank(SMALL)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.inference_mode():
        first = rank.tokens(ids, 0)
        second = rank.tokens(first, 5)
        assert rank.tokens(torch.cat((ids, first), dim=1), 0).tolist() == second.tolist()
        assert rank.times(2)[1][1] > 0 and len(rank.times(2)) == 2


def test_the_table_has_a_row_per_system_and_leaves_out_what_was_not_run():
    two = next(place for place in PLACES if place.devices == 2)
    plain = {PLACES[0]: [Speed(0.2, 0.05), Speed(0.1, 0.02), Speed(0.4, 0.1)]}
    found = {"plain": plain, "gloo": {two: [Speed(1, 1)]}}
    table = table_of(found)
    assert table.columns[1] == "1 device" and table.columns[2] == "N=2, 1000 Mbit/s"
    assert table.rows[0][:3] == ("plain", "640 / 20.0", "")  # the median of each
    assert table.rows[1][:3] == ("gloo", "", "128 / 1.0")


def test_one_device_is_compared_with_plain_torch_and_several_with_both_baselines(monkeypatch):
    monkeypatch.setattr(native, "baseline", lambda place, kind: [Speed(1, 1)])
    monkeypatch.setattr(native, "ours", lambda place, strategy, params, bits=0: [Speed(1, 1)])
    alone = [name for name, _ in native.speeds_at(PLACES[0])]
    assert alone[:2] == ["plain torch", "EdgeLoom single"] and "EdgeLoom single, weights of 8 bits" in alone
    names = [name for name, _ in native.speeds_at(Place(4, 1e8))]
    assert names[:2] == ["torch, tensor parallel over gloo", "torch, pipeline over gloo"]
    assert "EdgeLoom megatron" in names and "EdgeLoom gpipe" in names
    assert names[-1] == "EdgeLoom megatron, all_reduce ring"
    assert "EdgeLoom megatron, head columns" in names
    assert names[-1] not in [name for name, _ in native.speeds_at(Place(4, 1e9))]


def test_a_table_says_how_often_everything_was_started():
    assert "(at 20 Mbit/s 1) in one run, on the same links" in table_of({}, 1).title
    assert "2 rounds (at 20 Mbit/s 1) in each of 3 runs in turn" in table_of({}, 3).title
    assert [native.rounds_at(Place(2, rate)) for rate in native.RATES] == [2, 2, 1]


def test_the_model_has_105_8_million_parameters():
    assert round(num_parameters(model_of_105m()) / 1e6, 1) == 105.8


def test_a_steps_parts_are_those_of_the_source_and_the_rest_completes_the_step():
    spec = native.spec_at(Place(2, 1e8), "gpipe", {})
    plan = prepare(spec).plan
    report = RunReport(spec=spec, plan=plan, world="emulated", dilation=1.0, tpot_s=0.030)
    steps = native.NEW_TOKENS - 1
    spans = [
        Span("n0", "compute", "block", 0, 0.0, 9.0, token=0),  # the prompt
        Span("n1", "compute", "block", 4, 0.0, 9.0, token=1),  # not the source
        Span("n0", "compute", "block", 0, 10.0, 10.0 + 0.012 * steps, token=1),
        Span("n0", "send", "hidden", 0, 20.0, 20.0 + 0.001 * steps, bytes=1250 * steps, token=1),
        Span("n0", "recv", "hidden", 0, 0.0, 0.005 * steps, bytes=2500 * steps, token=1),
        # one program waits while another computes, and for longer
        Span("n0", "wait", "recv hidden", -1, 10.0, 10.0 + 0.027 * steps, token=1),
    ]
    found = profile_of(spec, report, spans, memory_byte_per_s=1e10)
    assert (found.arithmetic_s, found.sending_s, found.waiting_s) == pytest.approx((0.012, 0.001, 0.015))
    assert found.rest_s == pytest.approx(0.002)
    assert found.link_bound_s == pytest.approx(2500 * 8 / 1e8)
    half = 4 * (4 * 768**2 + 3 * 768 * 2048) + 32000 * 768  # four of eight layers, and the head
    assert found.arithmetic_bound_s == pytest.approx(4 * half / 1e10, rel=1e-3)


def test_the_bounds_are_bytes_over_rates():
    """By hand: 8 layers of (4·768² + 3·768·2048) numbers, their norms, a head of 32,000·768 with its norm.
    A sum over four devices in a ring has 2·3/4 of its bytes on every link, those of one row are 3,072, and 16
    sums follow each other. Two cores share the arithmetic of four devices.
    """
    model = model_of_105m()
    assert step_bytes(model) == 4 * (8 * (4 * 768**2 + 3 * 768 * 2048 + 2 * 768) + 32000 * 768 + 768)
    (alone,) = bounds_at(Place(1, 0.0), model, 1e10, 0.15)
    assert alone == ("bound, one device", Speed(0.15, step_bytes(model) / 1e10))
    bounds = dict(bounds_at(Place(4, 1e8), model, 1e10, 0.15, cores=2))
    row_s = 3072 * 8 / 1e8
    weights_s = step_bytes(model) / 1e10
    tensor = bounds["bound, tensor parallel"]
    assert tensor.first_s == pytest.approx(0.15 / 2 + 16 * 1.5 * 128 * row_s)
    assert tensor.token_s == pytest.approx(weights_s / 2 + 16 * 1.5 * row_s)
    pipeline = bounds["bound, pipeline"]
    assert pipeline.first_s == pytest.approx(0.15 + (3 * 128 + 1) * row_s)
    assert pipeline.token_s == pytest.approx(weights_s + 4 * row_s)


def test_the_baseline_turns_queries_and_keys_as_transformers_does():
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    cos, sin = _turns(5, 8)
    theirs = apply_rotary_pos_emb(q, k, cos[None], sin[None])
    assert torch.equal(_turned(q, cos, sin), theirs[0]) and torch.equal(_turned(k, cos, sin), theirs[1])
