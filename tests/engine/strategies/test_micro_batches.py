"""How many requests of a burst pass a pipeline together, against the simulated world with every number."""

from random import Random

import pytest

from engine.domain.trace import Span
from tests.support.small_cases import GPT2, plan_of, play, spec_of, star

BY_HAND = {"devices": [{"device": f"d{rank}", "layers": 1} for rank in range(3)]}
SIZES = (1, 2, 3, 6)
WAYS = (("edgeshard", "no-bubbles"), ("edgeshard", "bubbles"), ("gpipe", ""))


def ends_s(spec, together):
    """When the last request is answered, so many being computed together."""
    plan = plan_of(spec)
    plan = plan.with_layout(plan.layout.model_copy(update={"micro_batch": together}))
    return max(item.end_s for item in play(spec, plan) if isinstance(item, Span))


def drawn(seed):
    """Three devices whose messages cost from nothing to a hundred times as much as a layer takes."""
    random = Random(f"pipeline/{seed}")
    device = {
        "op_overhead_s": 10 ** random.uniform(-5.5, -4),
        "message_overhead_s": random.choice((0.0, 10 ** random.uniform(-5, -2))),
        "receive_overhead_s": random.choice((0.0, 10 ** random.uniform(-5, -2.5))),
        "staging_byte_per_s": random.choice((None, 10 ** random.uniform(6, 9))),
    }
    cluster = star([10 ** random.uniform(7, 9) for _ in range(3)], **device)
    link = {"bit_per_s": 10 ** random.uniform(6, 9), "delay_s": random.choice((0.0, 1e-3))}
    links = tuple(one.model_copy(update=link) for one in cluster.links)
    return cluster.model_copy(update={"links": links})


def run_of(cluster, method, schedule, **params):
    burst = {"rows": 6, "requests": 6, "pattern": "bursty", "new_tokens": 5}
    scheduled = {"schedule": schedule} if schedule else {}
    return spec_of(method, GPT2, cluster, plan=BY_HAND, **burst, **params, **scheduled)


@pytest.mark.parametrize(("method", "schedule"), WAYS)
def test_whatever_messages_cost_the_best_planner_takes_the_soonest_batches(method, schedule):
    for seed in range(14):
        spec = run_of(drawn(seed), method, schedule, planner="best")
        played_s = {together: ends_s(spec, together) for together in SIZES}
        assert played_s[plan_of(spec).layout.micro_batch] == min(played_s.values()), seed
