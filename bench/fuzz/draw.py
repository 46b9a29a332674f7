"""Draws case number `index` of seed `seed`: always the same run, whatever was drawn before it."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.fuzz.clusters import draw_cluster
from bench.fuzz.models import draw_model, small_models
from bench.fuzz.params import draw_params
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.program.strategy import Strategy
from engine.strategies.registry import STRATEGIES, drafted, origin_of

WEIGHT_BITS = (0.0, 0.0, 8.0, 4.0)
LONGEST_PROMPT, MOST_NEW_TOKENS, MOST_REQUESTS = 14, 6, 4
LONGEST_ASSUMED = 24


def draw_spec(seed: int, index: int, strategies: tuple[Strategy, ...] = STRATEGIES) -> RunSpec:
    """Draw the run of case `index`. Strategies take turns, and each starts at another of the catalogue's
    small models, which take turns, too; all else is drawn.
    """
    random = Random(f"{seed}/{index}")
    chosen = strategies[index % len(strategies)]
    bases, turn = small_models(), sum(divmod(index, len(strategies)))
    model = draw_model(random, bases[turn % len(bases)])
    bits = Random(f"{seed}/{index}/bits").choice(WEIGHT_BITS)
    model = drafted(chosen, model.model_copy(update={"weight_bits": bits}))
    cluster = draw_cluster(random, model)
    unknown = Random(f"{seed}/{index}/unknown")
    assumed_tokens = unknown.randint(1, LONGEST_ASSUMED) if unknown.random() < 0.5 else 0
    workload = draw_workload(random, model).model_copy(update={"assumed_tokens": assumed_tokens})
    if workload.new_tokens:
        workload = workload.model_copy(update=draw_sampling(Random(f"{seed}/{index}/sampling")))
    params = _params(random, chosen, cluster)
    return RunSpec(
        name=f"fuzz {seed}/{index}",
        cluster=cluster,
        model=drafted(chosen, model, params),
        workload=workload,
        strategy=chosen.name,
        method=origin_of(chosen.name),
        params=params,
        seed=random.randrange(1000),
    )


def draw_workload(random: Random, model: ModelSpec) -> Workload:
    """Draw a workload of few tokens and one to four requests: one after another, as a burst, or
    in a queue.
    """
    generates = model.causal and model.has_head and random.random() < 0.9
    arrivals: tuple[dict[str, Any], ...] = (
        {"pattern": "sporadic"},
        {"pattern": "bursty"},
        {"pattern": "poisson", "rate_per_s": 10 ** random.uniform(-1, 3), "max_batch": 3},
        {"pattern": "users", "users": 2, "max_batch": random.randint(1, 2)},
    )
    return Workload(
        prompt_tokens=random.randint(1, LONGEST_PROMPT) if model.reads_text else None,
        new_tokens=random.randint(1, MOST_NEW_TOKENS) if generates else 0,
        requests=random.randint(1, MOST_REQUESTS),
        **random.choice(arrivals),
    )


def draw_sampling(random: Random) -> dict[str, float | int]:
    """Draw how tokens are drawn: the most likely ones in half of the runs."""
    if random.random() < 0.5:
        return {}
    return {
        "temperature": 10 ** random.uniform(-1, 1),
        "top_p": random.choice((1.0, random.uniform(0.05, 1))),
        "top_k": random.choice((0, random.randint(1, 100))),
    }


def _params(random: Random, chosen: Strategy, cluster: ClusterSpec) -> dict[str, object]:
    """Draw parameters: defaults in a quarter of the runs; mostly such that the run is lossless."""
    params = draw_params(random, chosen.Params, cluster) if random.random() < 0.75 else {}
    return params | (chosen.lossless_params() if random.random() < 0.75 else {})
