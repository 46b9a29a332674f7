"""EdgeShard plans bursts: by which objective, how many requests together, and how long they take."""

from random import Random

import pytest

from engine.domain.trace import Span
from tests.support.small_cases import GPT2, plan_of, play, spec_of, star


def test_bursts_are_planned_for_throughput_and_single_requests_for_latency():
    for pattern, expected in (("sporadic", "latency"), ("bursty", "throughput")):
        cluster = star([1e7] * 3, compute_model="flops")
        layout = plan_of(spec_of("edgeshard", GPT2, cluster, requests=6, pattern=pattern)).layout
        assert (layout.objective, layout.planner) == (expected, "exact")


def test_a_burst_that_would_end_later_in_a_pipeline_stays_on_one_device():
    """The links are so slow that a hop takes longer than all layers."""
    cluster = star([1e9] * 3)
    slow = [link.model_copy(update={"bit_per_s": 1e5}) for link in cluster.links]
    cluster = cluster.model_copy(update={"links": tuple(slow)})
    plan = plan_of(spec_of("edgeshard", GPT2, cluster, requests=2, pattern="bursty"))
    assert len(plan.layout.stages) == 1


@pytest.mark.parametrize("planner", ["paper", "best"])
def test_a_burst_gets_stages_with_which_it_ends_no_later_than_with_those_of_either_objective(planner):
    rng, chosen = Random(1), set()
    deep = GPT2.model_copy(update={"num_layers": 12})
    for _ in range(8):
        cluster = star([10 ** rng.uniform(7, 8.5) for _ in range(3)], compute_model="flops")
        rate = {"bit_per_s": 10 ** rng.uniform(6, 8)}
        links = tuple(link.model_copy(update=rate) for link in cluster.links)
        cluster, requests = cluster.model_copy(update={"links": links}), rng.choice((2, 3, 6))
        ends_s = {}
        for objective in ("auto", "latency", "throughput"):
            burst = {"requests": requests, "pattern": "bursty", "new_tokens": 2, "planner": planner}
            spec = spec_of("edgeshard", deep, cluster, objective=objective, **burst)
            plan = plan_of(spec)
            ends_s[objective] = max(item.end_s for item in play(spec, plan) if isinstance(item, Span))
            if objective == "auto":
                chosen.add(plan.layout.objective)
            else:
                assert plan.layout.objective == objective
        assert ends_s["auto"] <= 1.01 * min(ends_s.values())
    assert chosen == {"latency", "throughput"}


def burst_spec(op_overhead_s, **params):
    """Six requests with fixed costs of every operation, so that it pays to compute some together."""
    cluster = star([1e8] * 3, op_overhead_s=op_overhead_s, message_overhead_s=0.0)
    links = tuple(link.model_copy(update={"bit_per_s": 3e9}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    burst = {"rows": 6, "requests": 6, "pattern": "bursty", "new_tokens": 6}
    return spec_of("edgeshard", GPT2, cluster, **burst, **params)


def ends_s(spec, plan, together):
    """When the last request is answered, so many being computed together."""
    plan = plan.with_layout(plan.layout.model_copy(update={"micro_batch": together}))
    return max(item.end_s for item in play(spec, plan) if isinstance(item, Span))


def test_the_best_planner_computes_as_many_requests_together_as_its_schedule_ends_soonest_with():
    """Against the simulated world with every size."""
    stages = {"devices": [{"device": f"d{rank}", "layers": 1} for rank in range(3)]}
    chosen = {}
    for op_overhead_s in (1e-4, 2e-4, 1e-3):
        for schedule in ("no-bubbles", "bubbles"):
            spec = burst_spec(op_overhead_s, planner="best", schedule=schedule, plan=stages)
            plan = plan_of(spec)
            chosen[op_overhead_s, schedule] = plan.layout.micro_batch
            best_s = min(ends_s(spec, plan, together) for together in (1, 2, 3, 6))
            assert ends_s(spec, plan, plan.layout.micro_batch) == best_s
    assert any(chosen[cost, "bubbles"] != chosen[cost, "no-bubbles"] for cost, _ in chosen)


def test_the_paper_s_planner_computes_one_request_after_the_other_and_the_best_one_does_not_have_to():
    took_s = {}
    for planner in ("paper", "best"):
        spec = burst_spec(1e-3, planner=planner)
        plan = plan_of(spec)
        assert (plan.layout.micro_batch == 1) == (planner == "paper")
        took_s[planner] = ends_s(spec, plan, plan.layout.micro_batch)
    assert took_s["best"] < 0.8 * took_s["paper"]
