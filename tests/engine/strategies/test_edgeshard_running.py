"""EdgeShard's stages in the simulated world: their messages, their order, and the times that were planned."""

from itertools import pairwise

import pytest

from engine.domain.trace import Mark, Span
from tests.support.small_cases import GPT2, MODELS, plan_of, play, sends, spec_of, star

BY_HAND = {"devices": [{"device": name, "layers": layers} for name, layers in (("d0", 1), ("d2", 2))]}


def test_the_planned_time_of_stages_by_hand_is_that_of_the_objective_that_was_asked_for():
    """Layers take all of the time: one on d0 as long as four on d2, which has two of the three."""
    cluster = star([1e7, 1e7, 4e7], compute_model="flops", op_overhead_s=0.0, message_overhead_s=0.0)
    links = tuple(link.model_copy(update={"bit_per_s": 1e14}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    layouts = {
        objective: plan_of(spec_of("edgeshard", GPT2, cluster, objective=objective, plan=BY_HAND)).layout
        for objective in ("auto", "latency", "throughput")
    }
    assert {asked: layout.objective for asked, layout in layouts.items()} == {
        "auto": "latency",
        "latency": "latency",
        "throughput": "throughput",
    }
    spans = [
        item for item in play(spec_of("edgeshard", GPT2, cluster, plan=BY_HAND)) if isinstance(item, Span)
    ]
    busy_s = {
        name: sum(s.end_s - s.start_s for s in spans if (s.device, s.kind) == (name, "compute"))
        for name in ("d0", "d2")
    }
    assert layouts["throughput"].planned_s == pytest.approx(max(busy_s.values()), rel=0.02)
    assert layouts["latency"].planned_s == pytest.approx(sum(busy_s.values()), rel=0.02)


def test_the_planned_latency_counts_embedding_and_output_on_the_source_wherever_the_layers_are():
    cluster = star([1e7, 1e9], compute_model="flops", op_overhead_s=0.0, message_overhead_s=0.0)
    plan = plan_of(spec_of("edgeshard", GPT2, cluster))
    assert [stage.device for stage in plan.layout.stages] == [1]
    trace = play(spec_of("edgeshard", GPT2, cluster))
    ended_s = max(item.end_s for item in trace if isinstance(item, Span))
    assert plan.layout.planned_s == pytest.approx(ended_s, rel=0.05)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
def test_k_stages_make_k_hops_per_token_and_request(model):
    spec = spec_of(
        "edgeshard",
        model,
        star([1e7] * 3),
        rows=9,
        objective="throughput",
        first_layer="source",
        requests=2,
        pattern="bursty",
    )
    chain = [stage.device for stage in plan_of(spec).layout.stages]
    hops = list(pairwise([*chain, 0]))
    assert len(hops) == 3
    out = 1 if model.causal else 9
    for request in range(2):
        for token in range(4 if model.causal else 1):
            sent = [
                (s.device, s.peer, s.payload_bytes // (4 * model.hidden_size))
                for s in sends(play(spec))
                if (s.request, s.token) == (request, token)
            ]
            rows = 1 if token else 9
            sizes = [rows, rows, 1 if token else out]
            assert sent == [(f"d{a}", f"d{b}", size) for (a, b), size in zip(hops, sizes, strict=True)]


def finished_s(schedule, rates=(1e8, 1e8, 1e8), new_tokens=6):
    trace = play(
        spec_of(
            "edgeshard",
            GPT2,
            star(list(rates)),
            requests=3,
            pattern="bursty",
            objective="throughput",
            first_layer="source",
            new_tokens=new_tokens,
            schedule=schedule,
        )
    )
    return trace, max(item.end_s for item in trace if isinstance(item, Span))


def test_without_bubbles_a_request_starts_its_next_token_before_the_others_have_theirs():
    (eager, eager_s), (flushed, flushed_s) = finished_s("no-bubbles"), finished_s("bubbles")
    assert eager_s < flushed_s

    def overtakes(trace):
        """Some token's embedding starts before every request has the token before it."""
        emitted = {
            (m.facts["index"], m.facts["request"]): m.time_s
            for m in trace
            if isinstance(m, Mark) and m.name == "token_emitted"
        }
        return any(
            s.start_s < emitted[s.token - 1, other] - 1e-12
            for s in trace
            if isinstance(s, Span) and s.name == "embed" and s.token
            for other in range(3)
        )

    assert overtakes(eager) and not overtakes(flushed)


def test_every_request_keeps_its_own_order_without_bubbles():
    trace, _ = finished_s("no-bubbles", rates=(3e8, 1e8, 2e8))
    for request in range(3):
        mine = [
            m
            for m in trace
            if isinstance(m, Mark) and m.name == "token_emitted" and m.facts["request"] == request
        ]
        assert [m.facts["index"] for m in mine] == [*range(6)]
    for device in ("d0", "d1", "d2"):
        blocks = [
            (s.token, s.request, s.layer)
            for s in trace
            if isinstance(s, Span) and s.name == "block" and s.device == device
        ]
        assert blocks == sorted(blocks)
