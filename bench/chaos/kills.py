"""Random runs with random faults, each repeatable from (seed, number), for `./loom chaos`.

A trial draws a strategy, a model, a cluster, a workload, and one or two faults at random moments of the
undisturbed run. The devices are so slow that a run takes a second or so: what this host needs to detect a
failure and to start a process is short beside that. `chaos_verdict.py` says which trials are good.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.scenario import Change, DropDevice, FreezeDevice, JoinDevice, LinkDown, Scenario
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models.catalogue import resolve, smallest_models
from engine.program.strategy import Strategy
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES, origin_of, strategy

SILENCE_S = 1.0


class Trial(NamedTuple):
    """One run of a campaign: `spec` has the faults as its scenario."""

    seed: int
    number: int
    spec: RunSpec

    @property
    def title(self) -> str:
        faults = ", ".join(f"{c.kind} at {c.at_s:.4f} s" for c in self.spec.scenario.changes)
        return (
            f"trial {self.number} of seed {self.seed}: {self.spec.strategy}, {self.spec.model.name}, "
            f"{len(self.spec.cluster.devices)} devices, {faults}"
        )


def trial(seed: int, number: int, strategies: Sequence[Strategy] = STRATEGIES) -> Trial:
    """The same trial for the same numbers and strategies, on any machine."""
    random = Random(f"{seed}/{number}")
    while True:
        spec = _undisturbed(random, number, strategies)
        if strategy(spec.strategy).supports(spec.cluster, spec.model) is not None:
            continue
        try:
            latency_s = predict(spec).latency_s
        except PlanError:
            continue
        scenario = Scenario(changes=_faults(random, spec.cluster, latency_s))
        return Trial(seed, number, spec.model_copy(update={"scenario": scenario}))


@cache
def _models() -> tuple[str, ...]:
    """The smallest model of every family that reads text alone."""
    return tuple(name for name in smallest_models() if resolve(name)[0].vision is None)


def _undisturbed(random: Random, number: int, strategies: Sequence[Strategy]) -> RunSpec:
    chosen = random.choice(strategies)
    model, weights = resolve(random.choice(_models()), None)
    requests = random.choice([1, 1, 2, 3])
    workload = Workload(
        prompt_tokens=random.randint(4, 14),
        new_tokens=random.randint(2, 6) if model.has_head else 0,
        requests=requests,
        pattern=random.choice(["sporadic", "bursty"]),
    )
    return RunSpec(
        name=f"trial-{number}",
        cluster=_cluster(random),
        model=model,
        weights=weights,
        workload=workload,
        strategy=chosen.name,
        method=origin_of(chosen.name),
        params=chosen.lossless_params(),
        seed=number,
        silence_s=SILENCE_S,
    )


def _cluster(random: Random) -> ClusterSpec:
    """Draw two to six uneven devices on one switch."""
    names = [f"d{index}" for index in range(random.randint(2, 6))]
    return ClusterSpec(
        name="chaos",
        source=names[0],
        devices=[
            {
                "name": name,
                "flop_per_s": random.choice([1.5e7, 3e7, 1.2e8]),
                "memory_bytes": 2e8,
                "memory_byte_per_s": random.choice([1.5e7, 6e7]),
                "disk_byte_per_s": 1e7,
            }
            for name in names
        ],
        switches=[{"name": "s1"}],
        links=[
            {
                "a": name,
                "b": "s1",
                "bit_per_s": random.choice([3e6, 6e6, 1.5e7]),
                "delay_s": random.choice([0.0, 0.005]),
            }
            for name in names
        ],
    )


def _faults(random: Random, cluster: ClusterSpec, latency_s: float) -> tuple[Change, ...]:
    """One failure, sometimes a second one, sometimes the return of the first device. Seldom the source."""
    names = [device.name for device in cluster.devices]
    victims = random.sample(names[1:], min(len(names) - 1, random.choice([1, 1, 2])))
    if random.random() < 0.1:
        victims[0] = cluster.source
    changes: list[Change] = []
    for victim in victims:
        at_s = random.uniform(0.02, 0.98) * latency_s
        fault = random.choice(["drop", "drop", "freeze", "link"])
        if fault == "drop":
            changes.append(DropDevice(at_s=at_s, device=victim))
        elif fault == "freeze":
            changes.append(FreezeDevice(at_s=at_s, device=victim))
        else:
            changes.append(LinkDown(at_s=at_s, link=f"{victim}--s1"))
        if fault == "drop" and random.random() < 0.25 and victim != cluster.source:
            changes.append(JoinDevice(at_s=at_s + random.uniform(0.1, 0.6) * latency_s, device=victim))
    return tuple(sorted(changes, key=lambda change: change.at_s))
