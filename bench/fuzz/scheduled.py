"""Draws runs whose requests meet: they arrive in time, a scheduler admits them, devices fail in the middle of
a batch, and rates change.
"""

from __future__ import annotations

from itertools import accumulate
from itertools import count as numbers
from random import Random
from typing import Any

from bench.fuzz.clusters import AMPLE_BYTES, log_uniform
from bench.fuzz.draw import LONGEST_PROMPT, MOST_NEW_TOKENS, draw_sampling, draw_spec
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.scenario import Change, DropDevice, FreezeDevice, JoinDevice, Scenario, SetRate, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.workload import SchedulerName, Workload
from engine.program.strategy import Strategy
from engine.runs.predict import predict, prepare
from engine.strategies.registry import STRATEGIES, strategy

MOST_REQUESTS, MOST_TOGETHER, MOST_CHUNK = 7, 4, 8
FAR = 1_000_000
"""Cases so far away are others of the same strategy: one of them has a model that generates."""


def draw_scheduled(seed: int, index: int, strategies: tuple[Strategy, ...] = STRATEGIES) -> RunSpec:
    """Draw the run of case `index`: its cluster, model and parameters as those of `draw_spec`."""
    far = FAR * len(strategies)
    base = next(
        spec
        for turn in numbers()
        if _generates((spec := draw_spec(seed, index + turn * far, strategies)).model)
    )
    random = Random(f"{seed}/{index}/scheduled")
    alone = base.model_copy(
        update={"workload": Workload(prompt_tokens=LONGEST_PROMPT, new_tokens=MOST_NEW_TOKENS)}
    )
    alone_s = _latency_s(alone)
    if alone_s is None:  # most often for want of memory
        base, alone = (one.model_copy(update={"cluster": _ample(one.cluster)}) for one in (base, alone))
        alone_s = _latency_s(alone)
    workload = _workload(random, base, alone_s or 1.0, _schedulers(alone))
    spec = base.model_copy(update={"name": f"scheduled {seed}/{index}", "workload": workload})
    latency_s = _latency_s(spec)
    if latency_s is None or random.random() < 0.3:
        return spec
    changes = _changes(random, spec, latency_s)
    return spec.model_copy(update={"scenario": Scenario(changes=changes), "silence_s": latency_s / 10})


def _generates(model: ModelSpec) -> bool:
    return model.causal and model.has_head and model.reads_text and model.vision is None


def _ample(cluster: ClusterSpec) -> ClusterSpec:
    devices = tuple(one.model_copy(update={"memory_bytes": AMPLE_BYTES}) for one in cluster.devices)
    return cluster.model_copy(update={"devices": devices})


def _schedulers(spec: RunSpec) -> list[SchedulerName]:
    """The schedulers that the method's plan takes."""
    try:
        plan = prepare(spec).plan
    except (PlanError, SpecError):
        return ["auto"]
    found: list[SchedulerName] = ["auto", "fcfs"]
    if strategy(spec.strategy).why_not_ragged(plan) is None:
        found += ["continuous", "chunked"] * 2
    if strategy(spec.strategy).why_not_apart(plan) is None:
        found += ["disaggregated"] * 3
    return found


def _latency_s(spec: RunSpec) -> float | None:
    """What the undisturbed run takes; None where it has no plan or does not finish."""
    try:
        report = predict(spec)
    except (PlanError, SpecError):
        return None
    return report.latency_s if report.outcome.kind == "finished" else None


def _workload(random: Random, base: RunSpec, alone_s: float, schedulers: list[SchedulerName]) -> Workload:
    """Draw requests that meet, admitted by one of `schedulers`. One alone takes about `alone_s`."""
    given: dict[str, Any] = {
        "scheduler": random.choice(schedulers),
        "max_batch": random.randint(1, MOST_TOGETHER),
        "assumed_tokens": base.workload.assumed_tokens,
    }
    if given["scheduler"] == "chunked":
        given["chunk_tokens"] = random.randint(1, MOST_CHUNK)
    sizes = {"prompt_tokens": LONGEST_PROMPT, "new_tokens": random.randint(2, 2 * MOST_NEW_TOKENS)}
    sampling = draw_sampling(random)
    match random.choice(("poisson", "users", "trace", "trace", "serve")):
        case "poisson":
            requests = random.randint(2, MOST_REQUESTS)
            rate_per_s = log_uniform(random, 0.3, 10.0) / alone_s
            given |= sizes | sampling | {"requests": requests, "rate_per_s": rate_per_s}
        case "users":
            given |= sizes | sampling | {"requests": random.randint(2, MOST_REQUESTS), "users": 3}
            given |= {"think_s": random.choice((0.0, alone_s / 3))}
        case "serve":
            given |= sizes | {"requests": MOST_REQUESTS, "trace": _rows(random, alone_s, sizes["new_tokens"])}
            return Workload(pattern="serve", **given)
        case _:
            rows = _rows(random, alone_s, sizes["new_tokens"])
            return Workload(pattern="trace", trace=rows, **given | sampling)
    return Workload(pattern="poisson" if "rate_per_s" in given else "users", **given)


def _rows(random: Random, alone_s: float, most: int) -> list[dict[str, Any]]:
    """Requests of unequal lengths, some of which draw their tokens in a way of their own."""
    count = random.randint(2, MOST_REQUESTS)
    waits_s = [random.expovariate(1.0) * alone_s * random.choice((0.0, 0.1, 0.5)) for _ in range(count)]
    return [
        {
            "at_s": at_s,
            "prompt_tokens": random.randint(1, LONGEST_PROMPT),
            "new_tokens": random.randint(1, most),
            "person": random.choice(("ann", "bob")),
            "sampling": how | {"seed": random.randrange(1000)} if (how := draw_sampling(random)) else None,
        }
        for at_s in accumulate(waits_s)
    ]


def _changes(random: Random, spec: RunSpec, latency_s: float) -> tuple[Change, ...]:
    """Up to two failures, sometimes a return, and changes of rates, at any time of the undisturbed run."""
    cluster, changes = spec.cluster, list[Change]()
    others = [cluster.devices[rank].name for rank in cluster.workers if rank != cluster.source_rank]

    def at_s() -> float:
        return random.uniform(0.02, 0.98) * latency_s

    for victim in random.sample(others, min(len(others), random.choice((0, 1, 1, 2)))):
        time_s = at_s()
        kind = random.choice((DropDevice, DropDevice, FreezeDevice))
        changes.append(kind(at_s=time_s, device=victim))
        if kind is DropDevice and random.random() < 0.3:
            changes.append(JoinDevice(at_s=time_s + random.uniform(0.1, 0.6) * latency_s, device=victim))
    for link in random.sample(cluster.links, min(len(cluster.links), random.randint(0, 2))):
        rate = link.bit_per_s * log_uniform(random, 0.1, 10.0)
        changes.append(SetRate(at_s=at_s(), link=link.name, bit_per_s=rate))
    for rank in random.sample(cluster.workers, random.randint(0, 1)):
        factor = log_uniform(random, 0.3, 5.0)
        changes.append(SlowDevice(at_s=at_s(), device=cluster.devices[rank].name, factor=factor))
    return tuple(sorted(changes, key=lambda change: change.at_s or 0.0))
